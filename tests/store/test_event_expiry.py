"""Events expire an hour after their last update: on every store, after a restart, and for events of other servers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mooring.api.kinds import CONFIG_MAP, CORE_EVENT, EVENT
from mooring.apiserver.assembly import open_api_server
from mooring.apiserver.event_expiry import BATCH_EVENTS, EVENT_TTL_S, EventExpiry, last_update_s
from mooring.apiserver.loopback import LoopbackClient
from mooring.client.interface import Change, PatchForm
from mooring.kit.clock import SystemClock, VirtualClock, format_rfc3339, parse_rfc3339
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.serving.users import User as Identity
from mooring.store.interface import Store, StoreUnreachable
from mooring.store.memory import MemoryStore
from tests.api_servers import WITHOUT_CONTROLLERS
from tests.client.objects import config_map
from tests.store.etcd.builders import Etcd
from tests.store.etcd.builders import play as play_etcd
from tests.store.sqlite.builders import play as play_sqlite

SETTINGS = replace(WITHOUT_CONTROLLERS, event_ttl_s=EVENT_TTL_S)
NOW = "2026-01-01T12:00:00Z"
MINUTE_S = 60.0


def event(name: str, **fields: object) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web"},
        **fields,
    }


def stored(name: str, created_s: float, **fields: object) -> bytes:
    metadata = {"name": name, "namespace": "default", "creationTimestamp": format_rfc3339(created_s)}
    return json.dumps({**event(name, **fields), "metadata": metadata}).encode()


async def names(store: Store) -> list[str]:
    return [record.key.rpartition("/")[2] for record in (await store.list(CORE_EVENT.key_prefix)).records]


class TestOnTheWholeServer:
    def test_an_event_expires_one_hour_after_its_last_update(self) -> None:
        clock, store = VirtualClock(), MemoryStore()

        async def play() -> None:
            async with open_api_server(store, clock, Entropy(1), SETTINGS) as server:
                client = LoopbackClient(server, Identity("tester"), "tester")
                await client.create(CORE_EVENT, "default", event("once"))
                await client.create(CORE_EVENT, "default", event("again"))
                await client.create(CONFIG_MAP, "default", config_map())
                since = (await client.list(EVENT)).revision
                await clock.wait(30 * MINUTE_S)
                patch = {"count": 2, "lastTimestamp": format_rfc3339(clock.wall_s())}
                await client.patch(CORE_EVENT, "default", "again", patch, form=PatchForm.MERGE)
                await clock.wait(29 * MINUTE_S)
                assert await names(store) == ["again", "once"]
                await clock.wait(2 * MINUTE_S)
                assert await names(store) == ["again"]
                async with client.watch(EVENT, since=since) as watch:
                    seen = [each.change for each in await watch.next_batch()]
                assert seen == [Change.MODIFIED, Change.DELETED], "watches must get the deletion"
            async with open_api_server(store, clock, Entropy(2), SETTINGS):
                await clock.wait(28 * MINUTE_S)
                assert await names(store) == ["again"]
                await clock.wait(3 * MINUTE_S)
                assert await names(store) == []
                assert len((await store.list(CONFIG_MAP.key_prefix)).records) > 0

        run(play(), clock)

    def test_events_do_not_expire_without_a_time_to_live(self) -> None:
        clock, store = VirtualClock(), MemoryStore()

        async def play() -> None:
            async with open_api_server(store, clock, Entropy(1), replace(SETTINGS, event_ttl_s=0.0)) as server:
                client = LoopbackClient(server, Identity("tester"), "tester")
                await client.create(CORE_EVENT, "default", event("once"))
                await clock.wait(100 * EVENT_TTL_S)
                assert await names(store) == ["once"]

        run(play(), clock)

    def test_expiry_continues_after_a_store_failure(self) -> None:
        clock = VirtualClock()

        class Failing(MemoryStore):
            is_failing = False

            async def delete(self, key: str, *, if_revision: int | None = None) -> int:
                if self.is_failing:
                    raise StoreUnreachable("no answer")
                return await super().delete(key, if_revision=if_revision)

        store = Failing()

        async def play() -> None:
            async with open_api_server(store, clock, Entropy(1), SETTINGS) as server:
                client = LoopbackClient(server, Identity("tester"), "tester")
                await client.create(CORE_EVENT, "default", event("once"))
                store.is_failing = True
                await clock.wait(2 * EVENT_TTL_S)
                assert await names(store) == ["once"]
                store.is_failing = False
                await clock.wait(2 * MINUTE_S)
                assert await names(store) == []

        run(play(), clock)


class TestOnEveryStore:
    """Events of another server: only their timestamps determine their age."""

    def test_events_in_sqlite_expire_after_a_restart(self, tmp_path: Path) -> None:
        play_sqlite(tmp_path / "data", _write)
        play_sqlite(tmp_path / "data", _swept)

    def test_events_in_etcd_expire(self, etcd: Etcd) -> None:
        async def scenario(store: Store) -> None:
            await _write(store)
            await _swept(store)

        play_etcd(etcd.url, scenario)


async def _write(store: Store) -> None:
    now_s = SystemClock().wall_s()
    for number in range(BATCH_EVENTS + 20):  # more than one page
        value = stored(f"old-{number:04}", now_s - 2 * EVENT_TTL_S)
        await store.put(CORE_EVENT.key("default", f"old-{number:04}"), value)
    await store.put(CORE_EVENT.key("default", "young"), stored("young", now_s - EVENT_TTL_S / 2))
    await store.put(CORE_EVENT.key("other", "protobuf"), b"k8s\x00\n\x0b\n\x02v1\x12\x05Event")


async def _swept(store: Store) -> None:
    await EventExpiry(store, SystemClock(), EVENT_TTL_S).sweep()
    assert await names(store) == ["young", "protobuf"]


@pytest.mark.parametrize(
    ("fields", "metadata", "updated"),
    [
        ({}, {"creationTimestamp": "2026-01-01T10:00:00Z"}, "2026-01-01T10:00:00Z"),
        ({}, {}, None),
        (
            {"lastTimestamp": "2026-01-01T11:00:00Z"},
            {"creationTimestamp": "2026-01-01T10:00:00Z"},
            "2026-01-01T11:00:00Z",
        ),
        ({"lastTimestamp": None, "eventTime": None, "series": None}, {"creationTimestamp": None}, None),
        (
            {"series": {"count": 2, "lastObservedTime": "2026-01-01T11:30:00.000000Z"}},
            {"creationTimestamp": "2026-01-01T10:00:00Z"},
            "2026-01-01T11:30:00Z",
        ),
        (
            {},
            {"creationTimestamp": "2026-01-01T10:00:00Z", "managedFields": [{"time": "2026-01-01T10:20:00Z"}, {}]},
            "2026-01-01T10:20:00Z",
        ),
        (
            {"lastTimestamp": "2126-01-01T11:00:00Z"},
            {"creationTimestamp": "2026-01-01T10:00:00Z"},
            "2026-01-01T10:00:00Z",
        ),
        ({"lastTimestamp": "yesterday"}, {"creationTimestamp": "2026-01-01T10:00:00Z"}, "2026-01-01T10:00:00Z"),
    ],
    ids=["created", "no time", "counted", "nulls", "a series", "a manager", "the future", "nonsense"],
)
def test_last_update_of_an_event(fields: dict[str, object], metadata: dict[str, object], updated: str | None) -> None:
    value = json.dumps({**event("a"), "metadata": {"name": "a", **metadata}, **fields}).encode()
    expected = parse_rfc3339(updated) if updated is not None else None
    assert last_update_s(value, parse_rfc3339(NOW)) == expected
