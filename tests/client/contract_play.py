"""How a scenario of the contract is played on a client, and what the scenarios have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import pytest

from mooring.api.kinds import CONFIG_MAP, POD
from mooring.client.interface import Change, Client, Watch, WatchEvent
from tests.client.objects import Body, text_at

Scenario: TypeAlias = Callable[[Client], Awaitable[None]]
Play: TypeAlias = Callable[[Scenario], None]

NS = "default"


class PlayedContract:
    """A part of the contract. Who inherits it overrides `play`."""

    @pytest.fixture
    def play(self) -> Play:
        raise NotImplementedError


async def create_all(client: Client, *bodies: Body) -> str:
    """The revision after the last one."""
    raw = b"{}"
    for body in bodies:
        raw = await client.create(POD if body["kind"] == "Pod" else CONFIG_MAP, NS, body)
    return text_at(raw, "metadata.resourceVersion")


def names(items: Sequence[bytes]) -> list[str]:
    return [text_at(item, "metadata.name") for item in items]


async def events_of(watch: Watch, count: int) -> list[WatchEvent]:
    """At least that many changes, without the bookmarks."""
    events: list[WatchEvent] = []
    while len(events) < count:
        batch = await watch.next_batch()
        assert batch, "the watch was ended"
        events += [event for event in batch if event.change is not Change.BOOKMARK]
    return events


def told(events: Sequence[WatchEvent]) -> list[str]:
    return [f"{event.change.value} {text_at(event.raw, 'metadata.name')}" for event in events]
