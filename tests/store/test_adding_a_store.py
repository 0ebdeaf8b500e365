"""A store added as CONTRIBUTING.md describes: it implements `Store` and passes the contract suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import pytest

from mooring.api.kinds import POD
from mooring.apiserver.assembly import open_api_server
from mooring.apiserver.loopback import LoopbackClient
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.serving.users import User
from mooring.store.interface import Page, Record, Store, StoreChange, StoreWatch, WriteConflict
from mooring.store.memory import MemoryStore
from tests.api_servers import WITHOUT_CONTROLLERS
from tests.docs.pages import ROOT
from tests.store.contract import Play, Scenario, StoreContract

MARK = b"\x00v1\x00"
"""Precedes every value in the inner store."""


class MarkedStore:
    """A store with its own storage format: each value has a prefix."""

    def __init__(self) -> None:
        self._inner = MemoryStore()

    async def revision(self) -> int:
        return await self._inner.revision()

    async def get(self, key: str, *, at: int | None = None) -> Record | None:
        return _unmarked(await self._inner.get(key, at=at))

    def peek(self, key: str) -> Record | None:
        return _unmarked(self._inner.peek(key))

    async def list(self, folder: str, *, start: str = "", limit: int = 0, at: int | None = None) -> Page:
        page = await self._inner.list(folder, start=start, limit=limit, at=at)
        records = [_without_mark(record) for record in page.records]
        return Page(records, page.revision, page.next_start, page.remaining)

    async def put(self, key: str, value: bytes, *, if_revision: int | None = None) -> int:
        with _unmarked_conflicts():
            return await self._inner.put(key, MARK + value, if_revision=if_revision)

    async def delete(self, key: str, *, if_revision: int | None = None) -> int:
        with _unmarked_conflicts():
            return await self._inner.delete(key, if_revision=if_revision)

    def watch(self, folder: str, *, since: int) -> StoreWatch:
        return MarkedWatch(self._inner.watch(folder, since=since))

    async def compact(self, revision: int) -> None:
        await self._inner.compact(revision)

    def statistics(self) -> dict[str, int]:
        return self._inner.statistics()


class MarkedWatch:
    """A watch of a `MarkedStore`."""

    def __init__(self, inner: StoreWatch) -> None:
        self._inner = inner

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._inner.__aexit__(kind, error, trace)

    async def next_batch(self) -> Sequence[StoreChange]:
        return [
            StoreChange(
                change.key,
                change.revision,
                None if change.value is None else change.value.removeprefix(MARK),
                _unmarked(change.previous),
            )
            for change in await self._inner.next_batch()
        ]

    def interrupt(self) -> None:
        self._inner.interrupt()

    def seen_revision(self) -> int:
        return self._inner.seen_revision()

    def when_advanced(self, callback: Callable[[], None]) -> None:
        self._inner.when_advanced(callback)


@contextmanager
def _unmarked_conflicts() -> Iterator[None]:
    try:
        yield
    except WriteConflict as conflict:
        raise WriteConflict(conflict.key, _unmarked(conflict.current)) from None


def _unmarked(record: Record | None) -> Record | None:
    return None if record is None else _without_mark(record)


def _without_mark(record: Record) -> Record:
    return Record(record.key, record.value.removeprefix(MARK), record.revision)


class TestTheContract(StoreContract):
    @pytest.fixture
    def play(self) -> Play:
        def play(scenario: Scenario) -> None:
            async def main() -> None:
                store: Store = MarkedStore()
                await scenario(store)

            run(main())

        return play


def test_an_api_server_runs_on_an_added_store() -> None:
    clock = VirtualClock()
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "main", "image": "web:1"}]},
    }

    async def scenario() -> None:
        async with open_api_server(MarkedStore(), clock, Entropy(1), WITHOUT_CONTROLLERS) as api_server:
            client = LoopbackClient(api_server, User("tester"), "tester")
            await client.create(POD, "default", pod)
            assert b'"name":"web"' in await client.get(POD, "default", "web")

    run(scenario(), clock)


def test_the_recipe_in_contributing_names_the_steps() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    recipe = text.partition("### Add a store")[2].partition("###")[0]
    for place in ("src/mooring/store/interface.py", "StoreContract", "tests/store/contract.py"):
        assert f"`{place}`" in recipe
