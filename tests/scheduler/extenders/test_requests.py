"""Questions: what is sent for them, and what consultations conclude from the answers."""

from __future__ import annotations

import msgspec
import pytest

from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.extenders.cycle import (
    ExtenderRequest,
    FilterRequest,
    PreemptRequest,
    PrioritizeRequest,
    filter_with_extenders,
    preempt_with_extenders,
    prioritize_with_extenders,
)
from mooring.scheduler.extenders.extender import (
    Extender,
    ExtenderFailure,
    ExtenderFilterResult,
    ExtenderPreemptionResult,
    FilteredNodes,
    HostPriority,
    MetaVictims,
)
from mooring.scheduler.framework.post_filter import Victims
from tests.builders import node, pod
from tests.scheduler.extenders.builders import NamesAsObjects, answering, drive, extender, only
from tests.scheduler.harness import engine_of

ENGINE = engine_of(node("n1"), node("n2"), pod("v", uid="uv", on="n1"), pod("w", uid="uw", on="n2"))
POD = ENGINE.record(pod("p", uid="up"))
VICTIM = ENGINE.columns.pods["uv"]
VERBS = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1, "preemptVerb": "preempt"}
WHOLE, BY_NAME = extender(**VERBS), extender(**VERBS, nodeCacheCapable=True)
SENT_POD = {"metadata": {"name": "p", "namespace": "default", "uid": "up"}}
SENT_VICTIM = {"metadata": {"name": "v", "namespace": "default", "uid": "uv"}}


@pytest.mark.parametrize(
    ("message", "verb", "sent"),
    [
        pytest.param(
            FilterRequest(BY_NAME, POD, ("n1", "n2")),
            "filter",
            {"Pod": SENT_POD, "Nodes": None, "NodeNames": ["n1", "n2"]},
            id="filter by name",
        ),
        pytest.param(
            PrioritizeRequest(WHOLE, POD, ("n1",)),
            "prioritize",
            {
                "Pod": SENT_POD,
                "Nodes": {"metadata": {}, "items": [{"metadata": {"name": "n1"}, "spec": {"podCIDR": "10.0.0.0/24"}}]},
                "NodeNames": None,
            },
            id="prioritize whole nodes",
        ),
        pytest.param(
            PreemptRequest(BY_NAME, POD, {"n1": Victims((VICTIM,), 1)}),
            "preempt",
            {
                "Pod": SENT_POD,
                "NodeNameToVictims": None,
                "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "uv"}], "NumPDBViolations": 1}},
            },
            id="preempt by uid",
        ),
        pytest.param(
            PreemptRequest(WHOLE, POD, {"n1": Victims((VICTIM,), 0)}),
            "preempt",
            {
                "Pod": SENT_POD,
                "NodeNameToVictims": {"n1": {"Pods": [SENT_VICTIM], "NumPDBViolations": 0}},
                "NodeNameToMetaVictims": None,
            },
            id="preempt whole pods",
        ),
    ],
)
def test_what_is_sent_for_a_request(message: ExtenderRequest, verb: str, sent: object) -> None:
    assert message.verb == verb
    assert msgspec.json.decode(message.body(NamesAsObjects())) == sent


def test_what_is_read_of_answers() -> None:
    assert FilterRequest(BY_NAME, POD, ()).read(b'{"NodeNames":["n1"]}') == ExtenderFilterResult(("n1",))
    assert PrioritizeRequest(BY_NAME, POD, ()).read(b'[{"Host":"n1","Score":1}]') == (HostPriority("n1", 1),)
    assert PreemptRequest(BY_NAME, POD, {}).read(b"{}") == ExtenderPreemptionResult({})


def test_filters_are_consulted_one_after_the_other() -> None:
    first, second, other = (
        extender(f"http://{verb}", filterVerb=verb, nodeCacheCapable=True, **fields)
        for verb, fields in (("a", {}), ("b", {}), ("c", {"managedResources": [{"name": "example.com/gpu"}]}))
    )
    responses = answering(a=only("n2", "n1", failed={"n3": "x"}), b=only("n1", failed={"n2": "y", "n3": "z"}))
    found, rounds = drive(filter_with_extenders(POD, ("n1", "n2", "n3"), (first, second, other)), responses)
    assert isinstance(found, FilteredNodes)
    assert found.node_names == ("n1",)
    assert {name: status.reasons for name, status in found.node_to_status.items()} == {"n2": ("y",), "n3": ("z",)}
    assert len(rounds) == 2


def test_scores_of_extenders_with_one_address_add_up() -> None:
    extenders = (extender(**VERBS), extender(**VERBS))
    added, rounds = drive(
        prioritize_with_extenders(POD, ("n1",), extenders), answering(prioritize=(HostPriority("n1", 2),))
    )
    assert added == {"http://extender.test": {"n1": 40}}
    assert len(rounds) == 1


def preempted_with(victims: dict[str, Victims], *extenders: Extender, **responses: ExtenderPreemptionResult) -> object:
    result, _ = drive(preempt_with_extenders(POD, victims, extenders, ENGINE.columns), answering(**responses))
    return result


def found(*pods: PodInfo) -> Victims:
    return Victims(pods, 0)


def test_victims_are_agreed_on_one_after_the_other() -> None:
    other = ENGINE.columns.pods["uw"]
    victims = {"n2": found(other), "n1": found(VICTIM)}
    first, second = extender(preemptVerb="a"), extender(preemptVerb="b")
    both = ExtenderPreemptionResult({"n1": MetaVictims(("uv",), 0), "n2": MetaVictims(("uw",), 3)})
    only_one = ExtenderPreemptionResult({"n1": MetaVictims(("uv",), 0)})
    assert preempted_with(victims, first, a=both) == {"n2": Victims((other,), 3), "n1": found(VICTIM)}
    assert list(preempted_with(victims, first, a=both)) == ["n2", "n1"]  # type: ignore[call-overload]
    assert preempted_with(victims, first, second, a=both, b=only_one) == {"n1": found(VICTIM)}
    assert preempted_with(victims, first, second, a=ExtenderPreemptionResult({}), b=both) == {}, (
        "nobody is left to ask about"
    )
    assert preempted_with(victims, first, second, b=both) == ExtenderFailure("nobody answers a")
    assert preempted_with(victims) == victims
