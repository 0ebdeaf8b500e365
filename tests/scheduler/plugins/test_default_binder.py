"""DefaultBinder: asks the API server, and says what it said."""

from __future__ import annotations

from mooring.kit.loop import run
from mooring.scheduler.framework.status import Rejection, failure
from mooring.scheduler.plugins.default_binder import DefaultBinder
from tests.builders import node, pod
from tests.scheduler.harness import engine_of, plugin_of


class Clerk:
    """Binds, and keeps a list; or is out of order."""

    def __init__(self, error: OSError | None = None) -> None:
        self.bound: list[tuple[str, str, str, str]] = []
        self._error = error

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        if self._error is not None:
            raise self._error
        self.bound.append((namespace, name, uid, node_name))


def bound_by(clerk: Clerk) -> Rejection | None:
    record = engine_of().record(pod("web", namespace="shop", uid="u1"))

    async def binding() -> Rejection | None:
        return await DefaultBinder(clerk).bind(record, "n1")

    return run(binding())


def test_the_pod_is_bound_by_name_and_uid() -> None:
    clerk = Clerk()
    assert bound_by(clerk) is None
    assert clerk.bound == [("shop", "web", "u1", "n1")]


def test_what_the_api_server_says_against_it_is_the_failure() -> None:
    clerk = Clerk(OSError("pod web is assigned to node n2"))
    assert bound_by(clerk) == failure("pod web is assigned to node n2")


def test_an_engine_alone_binds_nothing() -> None:
    engine = engine_of(node("n1"))

    async def binding() -> Rejection | None:
        return await plugin_of(engine, DefaultBinder).bind(engine.record(pod("web")), "n1")

    assert run(binding()) == failure("cannot bind default/web to n1: this engine has no API server")
