"""Words for extenders in tests: settings in few words, scripted answers, whole objects as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config import load_configuration
from mooring.scheduler.extenders.cycle import Exchange, ExtenderRequest, ExtenderResponse
from mooring.scheduler.extenders.extender import Extender, ExtenderFailure, ExtenderFilterResult
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
) -> ExtenderFilterResult:
    """These nodes are left, by an extender that knows nodes by name."""
    return ExtenderFilterResult(node_names=names, failed=failed or {}, failed_and_unresolvable=for_good or {})


def drive(
    exchange: Exchange[Result], response: Callable[[ExtenderRequest], ExtenderResponse]
) -> tuple[Result, list[tuple[ExtenderRequest, ...]]]:
    """The result of a consultation, and what was asked for it, round by round."""
    rounds: list[tuple[ExtenderRequest, ...]] = []
    try:
        requests = next(exchange)
        while True:
            rounds.append(requests)
            requests = exchange.send(tuple(response(request) for request in requests))
    except StopIteration as end:
        result: Result = end.value
        return result, rounds


def answering(**by_verb: ExtenderResponse) -> Callable[[ExtenderRequest], ExtenderResponse]:
    """The same answer to every question with a verb."""

    def response(request: ExtenderRequest) -> ExtenderResponse:
        return by_verb.get(request.verb, ExtenderFailure(f"nobody answers {request.verb}"))

    return response


class NamesAsObjects:
    """Objects that consist of little more than their names. Nodes called `lost…` are gone."""

    def node(self, name: str) -> bytes:
        if name.startswith("lost"):
            raise LookupError(f"node {name} is gone")
        return msgspec.json.encode({"metadata": {"name": name}, "spec": {"podCIDR": "10.0.0.0/24"}})

    def pod(self, pod: PodInfo) -> bytes:
        return msgspec.json.encode({"metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}})
