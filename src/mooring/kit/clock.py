"""The clock: real and virtual time, and timestamps as Kubernetes writes them.

 1. `now_s` is monotonic and has an arbitrary origin; `wall_s` is seconds since 1970, UTC. `now_s` counts the
    time that a process is stopped and, on Linux, the time that the machine is suspended: a lease ends meanwhile.
 2. A virtual clock moves only when its loop moves it; both readings move together.
 3. `parse_rfc3339` reads back what `format_rfc3339_micro` writes, to the microsecond, until the year 2242, when the
    precision of a float is exceeded.

Time is a float of seconds because asyncio uses float seconds.
"""

import asyncio
import math
import re
import time
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Protocol

VIRTUAL_WALL_S = 1_767_225_600.0  # 2026-01-01T00:00:00Z: the default start of virtual time

MOMENTS_REMEMBERED = 4096

_EPOCH = datetime(1970, 1, 1)
_MICROS_PER_S = 1_000_000
_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))", re.ASCII
)


class Clock(Protocol):
    """The source of time of a component."""

    def now_s(self) -> float:
        """Monotonic seconds from an arbitrary origin."""
        ...

    def wall_s(self) -> float:
        """Seconds since 1970-01-01T00:00:00Z."""
        ...

    async def wait(self, delay_s: float) -> None:
        """Return after `delay_s`, or in the next iteration of the loop if it is zero or less."""
        ...


class SystemClock:
    """The time of the machine. Its readings are the functions of `time`, because each pod takes dozens."""

    now_s = staticmethod(
        # Unlike CLOCK_MONOTONIC, CLOCK_BOOTTIME goes on while the machine is suspended.
        partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
    )
    wall_s = staticmethod(time.time)

    async def wait(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)


class VirtualClock:
    """Time that only a `VirtualLoop` moves."""

    __slots__ = ("_now_s", "_wall_offset_s")

    def __init__(self, *, wall_s: float = VIRTUAL_WALL_S) -> None:
        self._now_s = 0.0
        self._wall_offset_s = wall_s

    def now_s(self) -> float:
        return self._now_s

    def wall_s(self) -> float:
        return self._wall_offset_s + self._now_s

    async def wait(self, delay_s: float) -> None:
        loop = asyncio.get_running_loop()
        # On any other loop this would sleep in real time while the clock stands still.
        assert getattr(loop, "clock", None) is self, (
            f"a virtual clock waits only on its own virtual loop, not on {loop!r}"
        )
        await asyncio.sleep(delay_s)

    def advance_to(self, now_s: float) -> None:
        """Move to `now_s`. Called only by the loop that drives this clock."""
        assert now_s >= self._now_s, f"virtual time cannot go back from {self._now_s} s to {now_s} s"
        self._now_s = now_s


class TimestampError(ValueError):
    """An invalid timestamp, or a time outside the years 1 to 9999."""


def format_rfc3339(wall_s: float) -> str:
    """As metav1.Time: UTC, whole seconds, truncated."""
    return _stamp(math.floor(wall_s))


def format_rfc3339_micro(wall_s: float) -> str:
    """As metav1.MicroTime: UTC, six digits of fraction."""
    whole_s = math.floor(wall_s)
    # Rounded, not truncated: the nearest float to .123456 may be below it. Only the fraction is multiplied, because
    # multiplying the whole would round twice.
    micros = round((wall_s - whole_s) * _MICROS_PER_S)
    if micros == _MICROS_PER_S:
        whole_s, micros = whole_s + 1, 0
    return f"{_seconds_text(whole_s)}.{micros:06d}Z"


@lru_cache(maxsize=MOMENTS_REMEMBERED)
def parse_rfc3339(text: str) -> float:
    """Seconds since 1970 of a timestamp with any fraction, `Z` or an offset.

    Cached, because pods of one rollout start in the same few seconds.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise TimestampError(f"{text!r} is not a timestamp; expected one such as 2026-01-02T15:04:05Z")
    year, month, day, hour, minute, second, fraction, sign, offset_hour, offset_minute = match.groups()
    try:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second))
    except ValueError as error:
        raise TimestampError(f"{text!r} is not a timestamp: {error}") from None
    since = moment - _EPOCH
    whole_s = since.days * 86_400 + since.seconds
    if sign is not None:
        offset_s = int(offset_hour) * 3600 + int(offset_minute) * 60
        whole_s -= offset_s if sign == "+" else -offset_s
    return whole_s + float(f"0.{fraction}") if fraction else float(whole_s)


@lru_cache(maxsize=64)  # thousands of timestamps of the same second share one text
def _stamp(whole_s: int) -> str:
    return f"{_seconds_text(whole_s)}Z"


@lru_cache(maxsize=64)
def _seconds_text(whole_s: int) -> str:
    try:
        return (_EPOCH + timedelta(seconds=whole_s)).isoformat(timespec="seconds")
    except OverflowError:
        raise TimestampError(
            f"{whole_s} s since 1970 lies outside the years 1 to 9999 that a timestamp can have"
        ) from None
