"""How a run on virtual time ends: nothing keeps running, no error is lost."""

import asyncio
import gc
from collections.abc import AsyncGenerator

import pytest

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import VirtualLoop, run


def loop_now() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


async def wait_for_godot() -> None:
    await asyncio.Event().wait()


def test_the_result_of_main_is_returned_and_its_error_raised() -> None:
    async def succeed() -> str:
        return "done"

    async def fail() -> None:
        raise ValueError("no")

    assert run(succeed()) == "done"
    with pytest.raises(ValueError, match="no"):
        run(fail())


async def fail_at_once() -> None:
    raise KeyError("lost")


def test_an_error_in_a_callback_fails_the_run() -> None:
    async def main() -> None:
        loop_now().call_later(1.0, lambda: 1 // 0)
        await asyncio.sleep(2.0)

    with pytest.raises(ExceptionGroup, match="were not awaited") as group:
        run(main())
    assert [type(error) for error in group.value.exceptions] == [ZeroDivisionError]


@pytest.mark.parametrize("is_kept", [True, False], ids=["still referred to", "already collected"])
def test_an_error_in_a_task_that_nobody_awaited_fails_the_run(is_kept: bool) -> None:
    kept: list[object] = []

    async def main() -> None:
        task = asyncio.get_running_loop().create_task(fail_at_once(), name="orphan")
        if is_kept:
            kept.append(task)
        del task
        await asyncio.sleep(1.0)
        gc.collect()

    with pytest.raises(ExceptionGroup, match="were not awaited") as group:
        run(main())
    assert [repr(error) for error in group.value.exceptions] == ["KeyError('lost')"]


def test_when_main_fails_the_errors_that_nobody_awaited_are_noted_on_its_own() -> None:
    async def main() -> None:
        orphan = asyncio.get_running_loop().create_task(fail_at_once())
        await asyncio.sleep(1.0)
        assert orphan.done()
        raise ValueError("main")

    with pytest.raises(ValueError, match="main") as failure:
        run(main())
    assert failure.value.__notes__ == ["also, not awaited: KeyError('lost')"]


def test_an_error_while_winding_up_fails_the_run() -> None:
    async def stubborn() -> None:
        try:
            await wait_for_godot()
        finally:
            raise OSError("cannot clean up")

    async def main() -> None:
        kept.append(asyncio.get_running_loop().create_task(stubborn()))
        await asyncio.sleep(0)

    kept: list[asyncio.Task[None]] = []
    with pytest.raises(ExceptionGroup) as group:
        run(main())
    assert [str(error) for error in group.value.exceptions] == ["cannot clean up"]


def test_what_is_left_running_is_cancelled_oldest_first_and_may_take_time_to_clean_up() -> None:
    ended: list[tuple[int, float]] = []

    async def linger(number: int) -> None:
        try:
            await wait_for_godot()
        finally:
            await asyncio.sleep(1.0)
            ended.append((number, loop_now().time()))

    async def main() -> None:
        kept.extend(asyncio.get_running_loop().create_task(linger(number)) for number in range(20))
        await asyncio.sleep(0)

    kept: list[asyncio.Task[None]] = []
    run(main())
    assert ended == [(number, 1.0) for number in range(20)]


def test_generators_left_open_are_closed() -> None:
    closed: list[str] = []

    async def count(name: str) -> AsyncGenerator[int, None]:
        try:
            for number in range(10):
                yield number
        finally:
            await asyncio.sleep(1.0)
            closed.append(name)

    async def main() -> None:
        kept = count("kept")
        still_referred_to.append(kept)
        await anext(kept)
        await anext(count("dropped"))
        await asyncio.sleep(5.0)
        assert closed == ["dropped"]

    still_referred_to: list[object] = []
    run(main())
    assert closed == ["dropped", "kept"]


def test_a_loop_cannot_be_entered_twice_and_can_run_again_after_stopping() -> None:
    async def reenter() -> None:
        loop_now().run_forever()

    loop = VirtualLoop(VirtualClock())
    with pytest.raises(RuntimeError, match="already running"):
        loop.run_until_complete(reenter())
    assert not loop.is_running()
    loop.call_later(3.0, loop.stop)
    loop.run_forever()
    assert loop.time() == 3.0
    loop.wind_up()
    assert loop.is_closed()


def test_an_interrupt_from_the_keyboard_ends_the_run() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    async def main() -> None:
        loop_now().call_later(1.0, interrupt)
        await asyncio.sleep(100.0)

    clock = VirtualClock()
    with pytest.raises(KeyboardInterrupt):
        run(main(), clock)
    assert clock.now_s() == 1.0
