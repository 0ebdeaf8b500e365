"""The fence: reading is free, writing only while we may."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from mooring.api.kinds import CONFIG_MAP, NODE, POD
from mooring.client.election.fence import FencedClient, OutsideFenceError
from mooring.client.interface import Client, PatchForm
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from tests.apiserver.servers import open_loopback_client
from tests.client.objects import config_map, node, pod

Request = Callable[[Client], Awaitable[object]]


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(lambda c: c.create(CONFIG_MAP, "default", config_map("other")), id="create"),
        pytest.param(lambda c: c.update(CONFIG_MAP, "default", "settings", config_map(data={"a": "b"})), id="update"),
        pytest.param(
            lambda c: c.patch(CONFIG_MAP, "default", "settings", {"data": {"a": "b"}}, form=PatchForm.MERGE), id="patch"
        ),
        pytest.param(lambda c: c.delete(CONFIG_MAP, "default", "settings"), id="delete"),
        pytest.param(lambda c: c.bind("default", "web", "", "n1"), id="bind"),
    ],
)
def test_a_write(request_: Request) -> None:
    async def main() -> None:
        is_open = False
        async with filled(clock) as inner:
            fenced = FencedClient(inner, lambda: is_open)
            before = await inner.list(CONFIG_MAP)
            with pytest.raises(OutsideFenceError) as refusal:
                await request_(fenced)
            assert not refusal.value.can_help_to_retry
            assert not refusal.value.is_outcome_unknown
            assert (await inner.list(CONFIG_MAP)).revision == before.revision
            is_open = True
            await request_(fenced)
            assert (await inner.list(CONFIG_MAP)).revision != before.revision

    clock = VirtualClock()
    run(main(), clock)


def test_reading_is_free() -> None:
    async def main() -> None:
        async with filled(clock) as inner:
            fenced = FencedClient(inner, lambda: False)
            assert await fenced.get(POD, "default", "web") == await inner.get(POD, "default", "web")
            listing = await fenced.list(POD)
            assert len(listing.items) == 1
            async with fenced.watch(POD, since=listing.revision) as watch:
                await inner.bind("default", "web", "", "n1")
                assert len(await watch.next_batch()) == 1

    clock = VirtualClock()
    run(main(), clock)


@asynccontextmanager
async def filled(clock: VirtualClock) -> AsyncIterator[Client]:
    async with open_loopback_client(clock) as client:
        await client.create(NODE, "", node("n1"))
        await client.create(POD, "default", pod("web"))
        await client.create(CONFIG_MAP, "default", config_map())
        yield client
