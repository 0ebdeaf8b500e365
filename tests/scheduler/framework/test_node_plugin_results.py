"""What a plugin for one node at a time returns or raises. An error ends the cycle of its pod, and no other."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mooring.api.views.pod import Pod
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.framework.adapter import (
    RAW_SCORE_MAX,
)
from mooring.scheduler.framework.node_plugins import FilterPlugin, NodeInfo, NodePlugin, ScorePlugin, Status
from mooring.scheduler.framework.status import Code, Reason
from tests.builders import node, pod
from tests.scheduler.framework.node_plugins import (
    engine_with,
    node_info,
)
from tests.scheduler.harness import decide, without_line


class Says(FilterPlugin):
    """Returns what the test wants."""

    name = "Says"
    answer: Callable[[Pod, NodeInfo], object] = staticmethod(lambda pod, node_info: None)

    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        return self.answer(pod, node_info)  # type: ignore[return-value]  # wrong answers are the point


class Scores(ScorePlugin):
    name = "Scores"
    answer: Callable[[Pod, NodeInfo], object] = staticmethod(lambda pod, node_info: 0)

    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        return self.answer(pod, node_info)  # type: ignore[return-value]  # wrong answers are the point


class AnyScores(Scores):
    name = "AnyScores"
    normalizes = True


@pytest.mark.parametrize(
    ("answer", "code", "reasons"),
    [
        pytest.param(Status.unschedulable("too loud"), Code.UNSCHEDULABLE, ("too loud",), id="unschedulable"),
        pytest.param(Status.unresolvable("too far"), Code.UNRESOLVABLE, ("too far",), id="unresolvable"),
        pytest.param(Status.unschedulable("hot", "loud"), Code.UNSCHEDULABLE, ("hot", "loud"), id="several reasons"),
    ],
)
def test_a_status_rejects_the_node(
    answer: object, code: Code, reasons: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Says, "answer", staticmethod(lambda pod, node_info: answer if node_info.name == "n1" else None))
    decision = decide(engine_with(Says, node("n1"), node("n2")), pod())
    status = decision.node_to_status["n1"]
    assert status is not None
    assert (status.plugin, status.code, status.reasons) == ("Says", code, reasons)
    assert (decision.node_to_status["n2"], decision.node_name) == (None, "n2")


def failure_of(decision: Decision) -> tuple[str | None, str]:
    """Where a cycle failed, and what it said."""
    assert decision.node_name is None
    assert decision.status is not None
    assert decision.status.code is Code.ERROR
    return decision.error, decision.status.message


def raises(pod: Pod, node_info: NodeInfo) -> object:
    if pod.metadata.name == "unlucky" and node_info.name != "n1":
        raise KeyError("power")
    return None


def test_an_exception_ends_the_cycle_of_its_pod_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Says, "answer", staticmethod(raises))
    engine = engine_with(Says, node("n1"), node("n2"), node("n3"))
    where = f"(test_node_plugin_results.py, line {raises.__code__.co_firstlineno + 2})"
    assert failure_of(decide(engine, pod("unlucky"))) == (
        "filter",
        f"running \"Says\" filter plugin: pod default/unlucky on node n2: KeyError: 'power' {where}",
    )
    assert decide(engine, pod("lucky")).node_name == "n1"


def gives_up(pod: Pod, node_info: NodeInfo) -> object:
    sys.exit("no licence")


def test_sys_exit_fails_one_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Says, "answer", staticmethod(gives_up))
    where = f"(test_node_plugin_results.py, line {gives_up.__code__.co_firstlineno + 1})"
    assert failure_of(decide(engine_with(Says, node("n1")), pod())) == (
        "filter",
        f'running "Says" filter plugin: pod default/p on node n1: SystemExit: no licence {where}',
    )


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(True, id="True"),
        pytest.param(False, id="False"),
        pytest.param(3, id="a number"),
        pytest.param("too loud", id="a text"),
        pytest.param(Reason("fine"), id="a Reason, which is for array plugins"),
        pytest.param(Status, id="the class"),
    ],
)
def test_a_filter_that_returns_no_status_is_an_error(answer: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Says, "answer", staticmethod(lambda pod, node_info: answer))
    decision = decide(engine_with(Says, node("n1")), pod())
    assert failure_of(decision) == (
        "filter",
        'running "Says" filter plugin: pod default/p on node n1: '
        f"filter returned {answer!r}; expected None or a Status",
    )


class Unprintable:
    """A value that cannot be shown, compared or tested."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __bool__(self) -> bool:
        raise RuntimeError("no bool")


@pytest.mark.parametrize(
    ("plugin", "method", "text"),
    [
        pytest.param(
            Says, "filter", 'running "Says" filter plugin: pod default/p on node n1: RuntimeError: no repr', id="filter"
        ),
        pytest.param(
            Scores,
            "score",
            'running Score plugins: plugin "Scores" failed with: pod default/p on node n1: RuntimeError: no repr',
            id="score",
        ),
        pytest.param(
            Says, "applies_to", 'running "Says" filter plugin: pod default/p: RuntimeError: no bool', id="applies_to"
        ),
    ],
)
def test_a_value_that_raises_when_it_is_looked_at_is_an_error(
    plugin: type[NodePlugin], method: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin, method, lambda *arguments: Unprintable())
    _, message = failure_of(decide(engine_with(plugin, node("n1"), node("n2")), pod()))
    assert without_line(message) == text


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no str")


def test_an_exception_that_cannot_be_shown_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(pod: Pod, node_info: NodeInfo) -> object:
        raise Unspeakable

    monkeypatch.setattr(Says, "answer", staticmethod(answer))
    _, message = failure_of(decide(engine_with(Says, node("n1")), pod()))
    assert without_line(message) == 'running "Says" filter plugin: pod default/p on node n1: Unspeakable'


def test_a_status_can_report_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Says, "answer", staticmethod(lambda pod, node_info: Status.error("the meter is away")))
    assert failure_of(decide(engine_with(Says, node("n1")), pod())) == (
        "filter",
        'running "Says" filter plugin: the meter is away',
    )


def loose(value: Any) -> Any:
    """A value that the type checker does not look at."""
    return value


@pytest.mark.parametrize(
    ("make", "text"),
    [
        pytest.param(
            Status.unschedulable, "reasons=(), plugin=''); a Status unschedulable needs a reason", id="no reason"
        ),
        pytest.param(
            lambda: Status.unresolvable(""),
            "('',), plugin=''); the reasons of a Status are texts that are not empty",
            id="an empty reason",
        ),
        pytest.param(
            lambda: Status(Code.ERROR, loose(7)),
            "reasons=7, plugin=''); the reasons of a Status are texts that are not empty",
            id="a number",
        ),
        pytest.param(
            lambda: Status(Code.ERROR, loose("away")),
            "'away', plugin=''); the reasons of a Status are texts that are not empty",
            id="a text, no tuple",
        ),
        pytest.param(
            lambda: Status(Code.SUCCESS, ("x",)), "a Status success has no reasons", id="success with a reason"
        ),
        pytest.param(
            lambda: Status(Code.WAIT),
            "reasons=(), plugin=''); a Status for a node is success, unschedulable, unresolvable, error",
            id="a code of another extension point",
        ),
    ],
)
def test_an_invalid_status_is_an_error(make: Callable[[], Status], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(pod: Pod, node_info: NodeInfo) -> Status:
        return make()

    monkeypatch.setattr(Says, "answer", staticmethod(answer))
    _, message = failure_of(decide(engine_with(Says, node("n1")), pod()))
    assert message.startswith('running "Says" filter plugin: pod default/p on node n1: filter returned Status(code=')
    assert message.endswith(text)


def test_an_exception_in_applies_to_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def applies_to(self: Says, pod: Pod) -> bool:
        raise LookupError

    monkeypatch.setattr(Says, "applies_to", applies_to)
    decision = decide(engine_with(Says, node("n1")), pod())
    where = f"(test_node_plugin_results.py, line {applies_to.__code__.co_firstlineno + 1})"
    assert failure_of(decision) == (
        "filter",
        f'running "Says" filter plugin: pod default/p: LookupError {where}',
    )


def test_an_error_during_preemption_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_when_empty(pod: Pod, node_info: NodeInfo) -> object:
        return Status.unschedulable("full") if node_info.pods else 1 / 0

    monkeypatch.setattr(Says, "answer", staticmethod(fails_when_empty))
    engine = engine_with(Says, node("n1"), pod("a", on="n1", priority=1, cpu=1))
    decision = decide(engine, pod(priority=5))
    assert decision.preemption is None
    assert decision.message is not None
    assert "ZeroDivisionError" in decision.message
    assert [p.name for p in node_info(engine, "n1").pods] == ["a"]
    assert not engine.columns.in_transaction


def test_the_line_of_an_inherited_method_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere: dict[str, object] = {"__name__": "elsewhere"}
    source = """
from tests.scheduler.framework.test_node_plugin_results import Says

class Inherits(Says):
    name = "Inherits"
"""
    exec(compile(source, "elsewhere.py", "exec"), elsewhere)
    monkeypatch.setattr(Says, "answer", staticmethod(raises))
    inherits = elsewhere["Inherits"]
    assert isinstance(inherits, type)
    assert issubclass(inherits, FilterPlugin)
    _, message = failure_of(decide(engine_with(inherits, node("n1"), node("n2")), pod("unlucky")))
    assert message.endswith(f"(test_node_plugin_results.py, line {raises.__code__.co_firstlineno + 2})")


@pytest.mark.parametrize(
    ("plugin", "answer", "wanted"),
    [
        pytest.param(Scores, 101, "from 0 to 100; with `normalizes = True` any whole number is valid", id="too much"),
        pytest.param(Scores, -1, "from 0 to 100; with `normalizes = True` any whole number is valid", id="too little"),
        pytest.param(Scores, 0.5, "from 0 to 100; with `normalizes = True` any whole number is valid", id="a fraction"),
        pytest.param(Scores, None, "from 0 to 100; with `normalizes = True` any whole number is valid", id="nothing"),
        pytest.param(Scores, True, "from 0 to 100; with `normalizes = True` any whole number is valid", id="yes"),
        pytest.param(AnyScores, 2**60, f"from {-RAW_SCORE_MAX} to {RAW_SCORE_MAX}", id="more than can be scaled"),
    ],
)
def test_an_invalid_score_is_an_error(
    plugin: type[Scores], answer: object, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scores, "answer", staticmethod(lambda pod, node_info: answer))
    decision = decide(engine_with(plugin, node("n1"), node("n2")), pod())
    assert failure_of(decision) == (
        "score",
        f'running Score plugins: plugin "{plugin.name}" failed with: pod default/p on node n1: '
        f"score returned {answer!r}; expected a whole number {wanted}",
    )


def test_a_whole_number_of_numpy_is_a_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scores, "answer", staticmethod(lambda pod, node_info: np.int64(7)))
    assert decide(engine_with(Scores, node("n1")), pod()).scores["n1"]["Scores"] == 7


def test_an_exception_while_scoring_ends_the_cycle_of_its_pod_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def divides(pod: Pod, node_info: NodeInfo) -> object:
        return 100 // len(pod.metadata.labels)

    monkeypatch.setattr(Scores, "answer", staticmethod(divides))
    engine = engine_with(Scores, node("n1"), node("n2"))
    where = f"(test_node_plugin_results.py, line {divides.__code__.co_firstlineno + 1})"
    assert failure_of(engine.decide(engine.record(pod("bare")))) == (
        "score",
        'running Score plugins: plugin "Scores" failed with: pod default/bare on node n1: '
        f"ZeroDivisionError: integer division or modulo by zero {where}",
    )
    assert decide(engine, pod(labels={"app": "web"})).node_name == "n1"
