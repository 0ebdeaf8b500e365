"""The volume that each claim would get on each node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.api.errors import LabelSelectorError
from mooring.api.labels import compile_selector
from mooring.api.nodeselector import compile_lenient
from mooring.api.quantity import quantity_nano
from mooring.api.storage import bound_to, class_of_claim, class_of_volume, is_bound_to
from mooring.api.views.meta import NodeSelector
from mooring.api.views.node import Node
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.plugins.volume_binding.matching import VolumeMatcher
from mooring.scheduler.plugins.volume_binding.topology import VolumeTopology
from tests.api.builders import node_selector, selector, term
from tests.builders import HOSTNAME, ZONE, node
from tests.storage_builders import from_nodes, volume, waiting

NODES = (node("n1", zone="a"), node("n2", zone="a"), node("n3", zone="b"), node("n4"))


def local(name: str, **facts: object) -> PersistentVolume:
    return volume(name, of_class="local", **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("volumes", "claim", "chosen"),
    [
        pytest.param([], waiting("c"), "- - - -", id="no volumes"),
        pytest.param([local("v")], waiting("c"), "v v v v", id="a volume for all nodes"),
        pytest.param([local("v", reached=from_nodes(ZONE, "a"))], waiting("c"), "v v - -", id="a volume for a zone"),
        pytest.param([local("v", reached=from_nodes(HOSTNAME, "n3"))], waiting("c"), "- - v -", id="for one node"),
        pytest.param(
            [local("big", size="9Gi"), local("small", size="6Gi"), local("tiny", size="4Gi")],
            waiting("c", size="5Gi"),
            "small small small small",
            id="the smallest that is large enough",
        ),
        pytest.param([local("v", size="5Gi")], waiting("c", size="5Gi"), "v v v v", id="just large enough"),
        pytest.param([local("v", size="1")], waiting("c", size=None), "v v v v", id="a claim that wants nothing"),
        pytest.param([local("w"), local("v")], waiting("c"), "v v v v", id="of equals the first by name"),
        pytest.param(
            [local("small", size="6Gi", reached=from_nodes(ZONE, "a")), local("big", size="9Gi")],
            waiting("c"),
            "small small big big",
            id="each node the smallest that it reaches",
        ),
        pytest.param([volume("v", of_class="other")], waiting("c"), "- - - -", id="another class"),
        pytest.param([volume("v")], waiting("c", of_class=""), "v v v v", id="no class is a class"),
        pytest.param([local("v", mode="Block")], waiting("c"), "- - - -", id="another mode"),
        pytest.param([local("v", mode="Block")], waiting("c", mode="Block"), "v v v v", id="the same mode"),
        pytest.param([local("v", mode="Filesystem")], waiting("c"), "v v v v", id="the mode by default"),
        pytest.param([local("v", modes=["ReadOnlyMany"])], waiting("c"), "- - - -", id="another access mode"),
        pytest.param(
            [local("v", modes=["ReadWriteOnce", "ReadOnlyMany"])], waiting("c"), "v v v v", id="access modes to spare"
        ),
        pytest.param([local("v", attributes_class="gold")], waiting("c"), "- - - -", id="attributes nobody asked for"),
        pytest.param(
            [local("v", attributes_class="gold")], waiting("c", attributes_class="gold"), "v v v v", id="attributes"
        ),
        pytest.param([local("v", phase="Released")], waiting("c"), "- - - -", id="a volume that is not available"),
        pytest.param([local("v", deleting=True)], waiting("c"), "- - - -", id="a volume that is being deleted"),
        pytest.param([local("v")], waiting("c", like=selector(tier="hot")), "- - - -", id="labels that are missing"),
        pytest.param(
            [local("v"), local("w", labels={"tier": "hot"})],
            waiting("c", like=selector(tier="hot")),
            "w w w w",
            id="labels that match",
        ),
        pytest.param([local("v", claimed_by="other")], waiting("c"), "- - - -", id="promised to somebody else"),
        pytest.param(
            [local("free", size="6Gi"), local("mine", claimed_by="c", phase="Bound")],
            waiting("c"),
            "mine mine mine mine",
            id="the volume that names the claim, whatever its phase",
        ),
        pytest.param(
            [local("free"), local("mine", claimed_by="c", claimed_uid="u")],
            waiting("c", uid="new"),
            "free free free free",
            id="it names a claim that is gone",
        ),
        pytest.param(
            [local("free"), local("mine", claimed_by="c", reached=from_nodes(ZONE, "a"))],
            waiting("c"),
            "mine mine - -",
            id="where the promised volume is not reached, no other is looked at",
        ),
        pytest.param(
            [local("free"), local("mine", claimed_by="c", size="1Gi")],
            waiting("c"),
            "free free free free",
            id="a promised volume that is too small is overlooked",
        ),
        pytest.param(
            [local("free"), local("mine", claimed_by="c", modes=["ReadOnlyMany"])],
            waiting("c"),
            "mine mine mine mine",
            id="access modes of a promised volume do not matter",
        ),
        pytest.param(
            [local("w", claimed_by="c"), local("v", claimed_by="c", reached=from_nodes(ZONE, "b"))],
            waiting("c"),
            "- - v -",
            id="of two promised volumes the first by name decides",
        ),
    ],
)
def test_the_volume_of_one_claim(volumes: list[PersistentVolume], claim: PersistentVolumeClaim, chosen: str) -> None:
    assert _chosen(_matcher(*volumes), [claim]) == [chosen.split()]


@pytest.mark.parametrize(
    ("volumes", "claims", "chosen"),
    [
        pytest.param(
            [local("v", size="6Gi"), local("w", size="9Gi")],
            [waiting("large", size="5Gi"), waiting("small", size="1Gi")],
            {"small": "v v v v", "large": "w w w w"},
            id="the smallest claim chooses first",
        ),
        pytest.param(
            [local("v")],
            [waiting("c"), waiting("d")],
            {"c": "v v v v", "d": "- - - -"},
            id="a volume serves one claim; equals choose in the pod's order",
        ),
        pytest.param(
            [local("v", reached=from_nodes(ZONE, "a")), local("w"), local("x", reached=from_nodes(ZONE, "a"))],
            [waiting("c"), waiting("d"), waiting("e")],
            {"c": "v v w w", "d": "w w - -", "e": "x x - -"},
            id="what is taken differs from node to node",
        ),
        pytest.param(
            [local("v"), volume("w", of_class="other")],
            [waiting("c"), waiting("d", of_class="other")],
            {"c": "v v v v", "d": "w w w w"},
            id="classes do not get into each other's way",
        ),
        pytest.param(
            [local("v", claimed_by="c"), local("w", claimed_by="d")],
            [waiting("c"), waiting("d")],
            {"c": "v v v v", "d": "w w w w"},
            id="promised volumes do not either",
        ),
    ],
)
def test_the_volumes_of_several_claims(
    volumes: list[PersistentVolume], claims: list[PersistentVolumeClaim], chosen: dict[str, str]
) -> None:
    matches = _matcher(*volumes).match(claims)
    named = {match.claim.metadata.name: _names(match.at(row) for row in range(4)) for match in matches}
    assert named == {name: row.split() for name, row in chosen.items()}


def test_a_claim_that_a_pod_mentions_twice_gets_two_volumes() -> None:
    matcher = _matcher(local("v", claimed_by="c"), local("w"))
    assert _chosen(matcher, [waiting("c"), waiting("c")]) == [["v"] * 4, ["w"] * 4]


def test_a_faulty_selector_is_reported_with_the_claim() -> None:
    with pytest.raises(LabelSelectorError) as caught:
        _matcher().match([waiting("c", like=selector("tier Bogus hot"))])
    assert str(caught.value) == (
        'error creating internal label selector for claim: default/c: "Bogus" is not a valid label selector operator'
    )


def test_volumes_come_and_go() -> None:
    matcher = _matcher(local("v"))
    claim = waiting("c")
    assert _chosen(matcher, [claim]) == [["v"] * 4]
    matcher.observe("v", bound_to(local("v"), waiting("other")))
    assert _chosen(matcher, [claim]) == [["-"] * 4]
    matcher.observe("v", local("v", version="2"))
    assert _chosen(matcher, [claim]) == [["v"] * 4]
    matcher.observe("v", local("v", version="3", size="1Gi"))
    assert _chosen(matcher, [claim]) == [["-"] * 4]
    matcher.observe("w", local("w"))
    assert _chosen(matcher, [claim]) == [["w"] * 4]
    matcher.observe("w", volume("w", of_class="other"))
    assert _chosen(matcher, [claim]) == [["-"] * 4]
    assert _chosen(matcher, [waiting("c", of_class="other")]) == [["w"] * 4]
    matcher.observe("w", None)
    assert _chosen(matcher, [waiting("c", of_class="other")]) == [["-"] * 4]


def test_nodes_that_change_reach_other_volumes() -> None:
    columns = Columns()
    columns.put_node(node("n1", zone="a"))
    matcher = VolumeMatcher(columns, VolumeTopology(columns))
    matcher.observe("v", local("v", reached=from_nodes(ZONE, "b")))
    assert matcher.match([waiting("c")])[0].at(0) is None
    columns.put_node(node("n1", zone="b"))
    found = matcher.match([waiting("c")])[0].at(0)
    assert found is not None
    assert found.metadata.name == "v"


# --- against kube-scheduler's way: each node by itself, each volume in order ------------------------------------

_REACHES: list[NodeSelector | None] = [
    None,
    from_nodes(ZONE, "a"),
    from_nodes(HOSTNAME, "n1"),
    from_nodes(HOSTNAME, "n3"),
    node_selector(term(f"{ZONE} Exists")),
    node_selector(term(f"{ZONE} In a"), term(f"{HOSTNAME} In n4")),
]
_volumes = st.builds(
    volume,
    name=st.sampled_from(["v1", "v2", "v3", "v4", "v5", "v6", "v7"]),
    size=st.sampled_from(["1Gi", "2Gi", "3Gi"]),
    of_class=st.sampled_from(["local", "local", "other"]),
    reached=st.sampled_from(_REACHES),
    claimed_by=st.sampled_from(["", "", "", "c0", "c1", "foreign"]),
    phase=st.sampled_from(["Available", "Available", "Available", "Bound"]),
    modes=st.sampled_from([["ReadWriteOnce"], ["ReadWriteOnce", "ReadOnlyMany"]]),
    labels=st.sampled_from([{}, {"tier": "hot"}]),
    deleting=st.sampled_from([False, False, False, True]),
)
_claims = st.builds(
    waiting,
    name=st.sampled_from(["c0", "c1", "c2"]),
    size=st.sampled_from([None, "1Gi", "2Gi"]),
    of_class=st.sampled_from(["local", "local", "other"]),
    modes=st.sampled_from([["ReadWriteOnce"], ["ReadOnlyMany"]]),
    like=st.sampled_from([None, None, selector(tier="hot")]),
)


@settings(max_examples=150)
@given(st.lists(_volumes, max_size=14), st.lists(_claims, min_size=1, max_size=4))
def test_all_nodes_at_once_are_each_node_by_itself(
    observed: list[PersistentVolume], claims: list[PersistentVolumeClaim]
) -> None:
    matcher = _matcher(*observed)
    current = {volume.metadata.name: volume for volume in observed}
    matches = matcher.match(claims)
    for row, node_view in enumerate(NODES):
        ours = [(match.claim, _name(match.at(row))) for match in matches]
        theirs = [(claim, _name(found)) for claim, found in _one_node(claims, list(current.values()), node_view)]
        assert ours == theirs


def _one_node(
    claims: Sequence[PersistentVolumeClaim], volumes: Sequence[PersistentVolume], on: Node
) -> list[tuple[PersistentVolumeClaim, PersistentVolume | None]]:
    taken: set[str] = set()
    found: list[tuple[PersistentVolumeClaim, PersistentVolume | None]] = []
    for claim in sorted(claims, key=lambda candidate: _requested(candidate)):
        of_class = [candidate for candidate in volumes if class_of_volume(candidate) == class_of_claim(claim)]
        in_order = sorted(
            (candidate for candidate in of_class if candidate.metadata.name not in taken), key=lambda v: v.metadata.name
        )
        match = _one_claim(claim, in_order, on)
        if match is not None:
            taken.add(match.metadata.name)
        found.append((claim, match))
    return found


def _one_claim(claim: PersistentVolumeClaim, volumes: Sequence[PersistentVolume], on: Node) -> PersistentVolume | None:
    smallest: PersistentVolume | None = None
    for candidate in volumes:
        if candidate.spec.claim_ref is not None and not is_bound_to(candidate, claim):
            continue
        if _size(candidate) < _requested(claim) or candidate.metadata.deletion_timestamp is not None:
            continue
        affinity = candidate.spec.node_affinity
        reached = affinity is None or affinity.required is None
        if affinity is not None and affinity.required is not None:
            reached = compile_lenient(affinity.required).matches(on.metadata.labels, name="")
        if is_bound_to(candidate, claim):
            return candidate if reached else None
        if candidate.status.phase != "Available" or not reached:
            continue
        if claim.spec.selector is not None and not compile_selector(claim.spec.selector).matches(
            candidate.metadata.labels
        ):
            continue
        if not set(claim.spec.access_modes) <= set(candidate.spec.access_modes):
            continue
        if smallest is None or _size(candidate) < _size(smallest):
            smallest = candidate
    return smallest


def _requested(claim: PersistentVolumeClaim) -> int:
    return quantity_nano(claim.spec.resources.requests.get("storage", 0))


def _size(volume: PersistentVolume) -> int:
    return quantity_nano(volume.spec.capacity["storage"])


def _matcher(*volumes: PersistentVolume) -> VolumeMatcher:
    columns = Columns()
    for node_view in NODES:
        columns.put_node(node_view)
    matcher = VolumeMatcher(columns, VolumeTopology(columns))
    for each_volume in volumes:
        matcher.observe(each_volume.metadata.name, each_volume)
    return matcher


def _chosen(matcher: VolumeMatcher, claims: list[PersistentVolumeClaim]) -> list[list[str]]:
    return [_names(match.at(row) for row in range(len(NODES))) for match in matcher.match(claims)]


def _names(volumes: Iterable[PersistentVolume | None]) -> list[str]:
    return [_name(volume) for volume in volumes]


def _name(volume: PersistentVolume | None) -> str:
    return volume.metadata.name if volume is not None else "-"
