"""Words go over a channel whole, in order, and those of one turn together."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import msgspec

from mooring.client.pipe_channel import LENGTH_BYTES, Channel, open_channel
from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup
from tests.waiting import LIMIT_S

CLOCK = SystemClock()

_encode = msgspec.msgpack.encode


class End:
    """One end that remembers what it heard."""

    def __init__(self) -> None:
        self.frames: list[list[str]] = []
        self.is_over = asyncio.Event()
        self.channel: Channel[str] = Channel(_encode, self._on_frame, self.is_over.set)

    async def leave(self) -> None:
        self.channel.abort()
        await self.is_over.wait()

    def _on_frame(self, frame: bytes) -> None:
        self.frames.append(msgspec.msgpack.decode(frame, type=list[str]))

    async def heard(self, count: int) -> None:
        while sum(map(len, self.frames)) < count:
            await CLOCK.wait(0)


def play(scene: Callable[[End, socket.socket], Awaitable[None]]) -> None:
    async def bounded() -> None:
        here, there = socket.socketpair()
        end = End()
        async with asyncio.timeout(LIMIT_S):
            await open_channel(here, lambda: end.channel)
            await scene(end, there)
            await end.leave()
        there.close()

    run_real(bounded())


def framed(*said: str) -> bytes:
    frame = _encode(list(said))
    return len(frame).to_bytes(LENGTH_BYTES, "big") + frame


class TestWhatIsHeard:
    def test_frames_that_come_in_pieces_are_put_together(self) -> None:
        async def scene(end: End, there: socket.socket) -> None:
            for byte in framed("a", "b") + framed("c"):
                there.send(bytes([byte]))
                await CLOCK.wait(0)
            await end.heard(3)
            assert end.frames == [["a", "b"], ["c"]]

        play(scene)

    def test_several_frames_that_come_at_once_are_taken_apart(self) -> None:
        async def scene(end: End, there: socket.socket) -> None:
            there.send(framed("a") + framed("b", "c") + framed())
            await end.heard(3)
            assert end.frames[:2] == [["a"], ["b", "c"]]

        play(scene)

    def test_an_end_that_goes_is_told_after_what_it_said(self) -> None:
        async def scene(end: End, there: socket.socket) -> None:
            there.send(framed("last words"))
            there.close()
            await end.is_over.wait()
            assert end.frames == [["last words"]]
            assert end.channel.is_over

        play(scene)


class TestWhatIsSaid:
    def test_what_is_said_in_one_turn_is_one_frame(self) -> None:
        async def scene(end: End, there: socket.socket) -> None:
            other = End()
            await open_channel(there, lambda: other.channel)
            end.channel.say("a")
            end.channel.say("b")
            await other.heard(2)
            end.channel.say("c")
            await other.heard(3)
            assert other.frames == [["a", "b"], ["c"]]
            await other.leave()

        play(scene)

    def test_what_was_said_before_closing_arrives(self) -> None:
        async def scene(end: End, there: socket.socket) -> None:
            other = End()
            await open_channel(there, lambda: other.channel)
            end.channel.say("farewell")
            end.channel.close()
            await other.is_over.wait()
            assert other.frames == [["farewell"]]

        play(scene)

    def test_who_says_more_than_the_other_end_takes_can_wait_for_it(self) -> None:
        async def scene(end: End, there: socket.socket) -> None:
            other = End()
            await open_channel(there, lambda: other.channel)
            other.channel.pause()
            end.channel.say("x" * (1 << 24))
            async with TaskGroup("waiting") as group:
                waiting = group.start(_after_a_turn(end.channel.writable), name="writer")
                await CLOCK.wait(0.05)
                assert not waiting.done()
                other.channel.resume()
                await waiting
            await other.leave()

        play(scene)

    def test_words_to_nobody_are_dropped(self) -> None:
        async def scene(end: End, there: socket.socket) -> None:
            there.close()
            await end.is_over.wait()
            end.channel.say("hello?")
            await end.channel.writable()

        play(scene)


async def _after_a_turn(wait: Callable[[], Awaitable[None]]) -> None:
    await CLOCK.wait(0.01)
    await wait()
