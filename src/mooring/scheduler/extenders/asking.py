"""Asking: carries a decision's questions to extenders, and their answers back.

Comes in   an engine with extenders, a pending pod, a way to the extenders
Goes out   a `Decision`; bindings that an extender makes

 1. While a decision waits for answers the columns stand still (see `event_buffer`).
 2. A question that cannot be asked is answered with a failure; what that means is for the decision to say.
 3. The first extender that binds and is interested in the pod binds it, instead of the Bind plugins. If it fails and
    its failures may be ignored, the next one is asked, and then the plugins.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from mooring.kit.tasks import run_bounded
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.event_buffer import EventBuffer
from mooring.scheduler.extenders import wire
from mooring.scheduler.extenders.extender import Extender, ExtenderFailure
from mooring.scheduler.extenders.questions import Answer, Consultation, Question, RawObjects
from mooring.scheduler.extenders.transport import ExtenderError, Transport

logger = logging.getLogger(__name__)

ASKED_AT_ONCE_MAX = 16
"""So many extenders are asked at the same time."""


class Decider(Protocol):
    """What decides: an engine that has extenders."""

    @property
    def columns(self) -> Columns: ...

    def decide_with_questions(self, pod: PodInfo, *, in_full: bool = False) -> Consultation[Decision]: ...


async def decide_asking(
    engine: Decider,
    pod: PodInfo,
    transport: Transport,
    objects: RawObjects,
    event_buffer: EventBuffer,
    *,
    in_full: bool = False,
) -> Decision:
    """Where does this pod go, all extenders asked?"""

    async def ask(question: Question) -> Answer:
        return await _answer(question, transport, objects)

    with event_buffer.held():
        consultation = engine.decide_with_questions(pod, in_full=in_full)
        position = _position(engine.columns)
        step = _begin(consultation)
        while not isinstance(step, Decision):
            answers = await run_bounded(ask, step, limit=ASKED_AT_ONCE_MAX, name="extenders")
            assert _position(engine.columns) == position, (
                "the columns changed while extenders were asked; whoever changes them must go through the event buffer"
            )
            step = _go_on(consultation, tuple(answers))
        return step


async def bind_with_extenders(
    extenders: Sequence[Extender], pod: PodInfo, node_name: str, transport: Transport
) -> bool:
    """Whether an extender has bound the pod; if not, the Bind plugins do. Raises `ExtenderError` if it failed."""
    for extender in extenders:
        if not extender.binds or not extender.is_interested(pod):
            continue
        try:
            await _bind(extender, pod, node_name, transport)
        except ExtenderError as error:
            if not extender.is_ignorable:
                raise
            logger.info("extender %s could not bind pod %s and is passed over: %s", extender.name, pod.key, error)
            continue
        return True
    return False


async def _bind(extender: Extender, pod: PodInfo, node_name: str, transport: Transport) -> None:
    verb = extender.settings.bind_verb
    body = wire.encode(wire.ExtenderBindingArgs(pod.name, pod.namespace, pod.uid, node_name))
    raw = await transport.ask(extender, verb, body)
    try:
        result = wire.read_binding_result(raw)
    except wire.UnreadableAnswerError as error:
        raise ExtenderError(_unreadable(extender, verb, error)) from error
    if result.error:
        raise ExtenderError(result.error)


async def _answer(question: Question, transport: Transport, objects: RawObjects) -> Answer:
    extender, verb = question.extender, question.verb
    try:
        return question.read(await transport.ask(extender, verb, question.body(objects)))
    except wire.UnreadableAnswerError as error:
        return ExtenderFailure(_unreadable(extender, verb, error))
    except ExtenderError as error:
        return ExtenderFailure(str(error))
    except LookupError as error:
        return ExtenderFailure(f"extender {extender.name} could not be asked to {verb}: {error.args[0]}")


def _unreadable(extender: Extender, verb: str, error: wire.UnreadableAnswerError) -> str:
    return f"extender at URL {extender.url(verb)} gave an answer that cannot be read: {error}"


def _begin(consultation: Consultation[Decision]) -> tuple[Question, ...] | Decision:
    try:
        return next(consultation)
    except StopIteration as end:
        return _decision(end)


def _go_on(consultation: Consultation[Decision], answers: tuple[Answer, ...]) -> tuple[Question, ...] | Decision:
    try:
        return consultation.send(answers)
    except StopIteration as end:
        return _decision(end)


def _decision(end: StopIteration) -> Decision:
    assert isinstance(end.value, Decision), f"a consultation ended with {end.value!r}"
    return end.value


def _position(columns: Columns) -> tuple[int, int]:
    return columns.usage_changes.position, columns.fact_changes.position
