"""Words for extenders in tests: settings in few words, scripted answers, whole objects as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config import load_configuration
from mooring.scheduler.extenders.extender import Extender, ExtenderFailure
from mooring.scheduler.extenders.questions import Answer, Consultation, Question
from mooring.scheduler.extenders.wire import FilterResult
from tests.scheduler.config.builders import configuration
from tests.waiting import LIMIT_S

Result = TypeVar("Result")
Written = dict[str, object]


def written(url: str = "http://extender.test", /, **fields: object) -> Written:
    """An extender as it stands in a configuration."""
    return {"urlPrefix": url, "httpTimeout": f"{LIMIT_S:g}s", **fields}


def extender(url: str = "http://extender.test", /, **fields: object) -> Extender:
    loaded = load_configuration(configuration(extenders=[written(url, **fields)]))
    return Extender(loaded.extenders[0])


def only(
    *names: str, failed: Mapping[str, str] | None = None, for_good: Mapping[str, str] | None = None
) -> FilterResult:
    """These nodes are left, by an extender that knows nodes by name."""
    return FilterResult(node_names=names, failed=failed or {}, failed_for_good=for_good or {})


def drive(
    consultation: Consultation[Result], answer: Callable[[Question], Answer]
) -> tuple[Result, list[tuple[Question, ...]]]:
    """The result of a consultation, and what was asked for it, round by round."""
    rounds: list[tuple[Question, ...]] = []
    try:
        questions = next(consultation)
        while True:
            rounds.append(questions)
            questions = consultation.send(tuple(answer(question) for question in questions))
    except StopIteration as end:
        result: Result = end.value
        return result, rounds


def answering(**by_verb: Answer) -> Callable[[Question], Answer]:
    """The same answer to every question with a verb."""

    def answer(question: Question) -> Answer:
        return by_verb.get(question.verb, ExtenderFailure(f"nobody answers {question.verb}"))

    return answer


class NamesAsObjects:
    """Objects that consist of little more than their names. Nodes called `lost…` are gone."""

    def node(self, name: str) -> bytes:
        if name.startswith("lost"):
            raise LookupError(f"node {name} is gone")
        return msgspec.json.encode({"metadata": {"name": name}, "spec": {"podCIDR": "10.0.0.0/24"}})

    def pod(self, pod: PodInfo) -> bytes:
        return msgspec.json.encode({"metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}})
