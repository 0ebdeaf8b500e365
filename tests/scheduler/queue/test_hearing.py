"""Whether an event makes a pod worth another try: who is asked, and what a yes is worth."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import pytest

from mooring.scheduler.framework.events import (
    ANYTHING,
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    Subject,
    Wake,
)
from mooring.scheduler.framework.plugin import Plugin
from mooring.scheduler.plugins.priority_sort import PrioritySort
from mooring.scheduler.queue.hearing import Ears, Verdict
from tests.builders import pod
from tests.scheduler.queue.builders import CLAIM_ADD, NODE_ADD, NODE_LABEL, HintLog, profile, record, refuser

YES = "yes"
NO = "no"
BROKEN = "broken"
UNASKED = "unasked"

ON_NODE_ADD = Wake(Subject.NODE, Action.ADD)


def ears(*plugins: Plugin, with_extenders: bool = False) -> Ears:
    return Ears({"default-scheduler": profile(*plugins)}, with_extenders=with_extenders)


def verdict(
    heard_by: Ears, event: ClusterEvent, *, rejectors: Iterable[str] = (), pending: Iterable[str] = ()
) -> Verdict:
    hearing = heard_by.hearing("default-scheduler", frozenset(rejectors), frozenset(pending), event)
    return Verdict.SLEEP if hearing is None else hearing.verdict(record(pod("p")), None, None)


ANSWERS: dict[str, bool | Exception] = {YES: True, NO: False, BROKEN: RuntimeError("no such zone"), UNASKED: True}


@pytest.mark.parametrize(
    ("rejectors", "pending", "hints", "expected"),
    [
        pytest.param("A", "", {"A": YES}, Verdict.AFTER_BACKOFF, id="a yes of who refused: after the backoff"),
        pytest.param("A", "", {"A": NO}, Verdict.SLEEP, id="a no: sleep on"),
        pytest.param("A", "", {"A": BROKEN}, Verdict.AFTER_BACKOFF, id="a hint that fails counts as a yes"),
        pytest.param("", "A", {"A": YES}, Verdict.AT_ONCE, id="a yes of whom it is pending on: at once"),
        pytest.param("", "A", {"A": NO}, Verdict.SLEEP, id="pending, and a no"),
        pytest.param("AB", "", {"A": NO, "B": YES}, Verdict.AFTER_BACKOFF, id="one yes is enough"),
        pytest.param("AB", "", {"A": YES, "B": UNASKED}, Verdict.AFTER_BACKOFF, id="nobody else could improve it"),
        pytest.param("AC", "B", {"A": YES, "B": YES, "C": UNASKED}, Verdict.AT_ONCE, id="the best verdict counts"),
        pytest.param("A", "B", {"A": YES, "B": NO}, Verdict.AFTER_BACKOFF, id="pending says no, a refuser says yes"),
        pytest.param("A", "", {"A": NO, "B": UNASKED}, Verdict.SLEEP, id="who did not refuse is not asked"),
    ],
)
@pytest.mark.parametrize("by_signature", [True, False], ids=["by shape", "by pod"])
def test_the_verdict_is_the_best_that_any_rejector_gives(
    rejectors: str, pending: str, hints: dict[str, str], expected: Verdict, by_signature: bool
) -> None:
    logs = {plugin: HintLog(ANSWERS[answer]) for plugin, answer in hints.items()}
    plugins = [refuser(name, Wake(Subject.NODE, Action.ADD, hint, by_signature)) for name, hint in logs.items()]
    assert verdict(ears(*plugins), NODE_ADD, rejectors=rejectors, pending=pending) is expected
    assert {name for name, log in logs.items() if log.asked} == {n for n, answer in hints.items() if answer != UNASKED}


@pytest.mark.parametrize(
    ("wake", "event", "expected"),
    [
        pytest.param(ON_NODE_ADD, NODE_ADD, Verdict.AFTER_BACKOFF, id="no hint: it always may help"),
        pytest.param(ON_NODE_ADD, NODE_LABEL, Verdict.SLEEP, id="another action"),
        pytest.param(ON_NODE_ADD, CLAIM_ADD, Verdict.SLEEP, id="another subject"),
        pytest.param(
            Wake(Subject.NODE, Action.UPDATE), NODE_LABEL, Verdict.AFTER_BACKOFF, id="all updates: the special ones too"
        ),
        pytest.param(Wake(Subject.ANY, Action.ADD), CLAIM_ADD, Verdict.AFTER_BACKOFF, id="any subject"),
        pytest.param(ANYTHING, NODE_LABEL, Verdict.AFTER_BACKOFF, id="anything"),
    ],
)
def test_only_wakes_about_such_events_count(wake: Wake, event: ClusterEvent, expected: Verdict) -> None:
    assert verdict(ears(refuser("A", wake)), event, rejectors="A") is expected


@pytest.mark.parametrize(("pending", "rejectors"), [("A", "B"), ("B", "A")], ids=["pending first", "pending last"])
def test_without_hints_too_the_best_verdict_counts(pending: str, rejectors: str) -> None:
    both = ears(refuser("A", ON_NODE_ADD), refuser("B", ON_NODE_ADD))
    assert verdict(both, NODE_ADD, rejectors=rejectors, pending=pending) is Verdict.AT_ONCE


@pytest.mark.parametrize("event", [UNSCHEDULABLE_TIMEOUT, FORCE_ACTIVATE], ids=lambda event: event.label)
def test_an_event_for_everybody_wakes_after_the_backoff_and_asks_nobody(event: ClusterEvent) -> None:
    log = HintLog()
    everything = ears(refuser("A", Wake(Subject.ANY, Action.ALL, log)))
    assert verdict(everything, event, pending="A") is Verdict.AFTER_BACKOFF
    assert everything.is_heard(event)
    assert log.asked == []


def test_a_hint_that_fails_is_logged_with_its_plugin(caplog: pytest.LogCaptureFixture) -> None:
    broken = refuser("Zones", Wake(Subject.NODE, Action.ADD, HintLog(RuntimeError("no such zone"))))
    with caplog.at_level(logging.ERROR):
        verdict(ears(broken), NODE_ADD, rejectors=["Zones"])
    assert "a hint of plugin Zones failed for pod default/p, which is woken" in caplog.text
    assert "no such zone" in caplog.text


def test_a_plugin_that_the_profile_does_not_know_hears_everything() -> None:
    assert verdict(ears(refuser("A", ON_NODE_ADD)), CLAIM_ADD, rejectors=["Stranger"]) is Verdict.AFTER_BACKOFF


def test_an_event_is_heard_if_any_plugin_that_may_refuse_hears_it() -> None:
    some = ears(refuser("A", ON_NODE_ADD), PrioritySort())
    assert [some.is_heard(event) for event in (NODE_ADD, NODE_LABEL, CLAIM_ADD)] == [True, False, False]


def test_with_extenders_everything_is_heard() -> None:
    extended = ears(refuser("A", ON_NODE_ADD), with_extenders=True)
    assert extended.is_heard(CLAIM_ADD)
    assert verdict(extended, CLAIM_ADD, rejectors=["Extender"]) is Verdict.AFTER_BACKOFF
