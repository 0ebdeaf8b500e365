"""Mishaps: what a user's plugin raised, as an error of this one cycle that names the plugin.

Comes in   an exception that got out of a step of the cycle
Goes out   a `Mishap`: the rejection with Kubernetes' words for a failing plugin, and the step; or None

There is one `try` around the whole cycle. Who failed is read from the traceback afterwards, so that a plugin that works
costs nothing for it: the innermost frame that runs a user's plugin, or that handles a user's plugin's answer.

 1. A plugin that comes with the scheduler is never excused: what it raises is a bug and goes on.
 2. Nothing of the cycle is half done: what is kept of a shape is dropped when it could not be brought up to date, and
    experiments take themselves back.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from types import FrameType
from typing import NamedTuple

from mooring.api.field_errors import quoted
from mooring.scheduler.framework.plugin import Plugin
from mooring.scheduler.framework.profile import FilterUse, ScoreUse
from mooring.scheduler.framework.status import Code, Rejection


class Mishap(NamedTuple):
    """A plugin that failed."""

    rejection: Rejection
    step: str
    """The word for `Decision.error`."""


class _Point(NamedTuple):
    step: str
    text: str


_PRE_FILTER = _Point("prefilter", "running PreFilter plugin {name}: {what}")
_FILTER = _Point("filter", "running {name} filter plugin: {what}")
_PRE_SCORE = _Point("prescore", "running PreScore plugin {name}: {what}")
_SCORE = _Point("score", "running Score plugins: plugin {name} failed with: {what}")
_ANSWER = "plugin {name} gave an answer that cannot be used: {what}"
_POINTS: Mapping[str, _Point] = {
    "pre_enqueue": _Point("preenqueue", "running PreEnqueue plugin {name}: {what}"),
    "pre_filter": _PRE_FILTER,
    "prepare": _PRE_FILTER,
    "filter": _FILTER,
    "filter_row": _FILTER,
    "reasons": _FILTER,
    "measures": _FILTER,
    "contribution": _FILTER,
    "filter_adjusted": _FILTER,
    "post_filter": _Point("postfilter", "running PostFilter plugin {name}: {what}"),
    "pre_score": _PRE_SCORE,
    "prepare_score": _PRE_SCORE,
    "score": _SCORE,
    "score_row": _SCORE,
    "normalise": _Point("score", "running Normalize on Score plugins: plugin {name} failed with: {what}"),
    "reserve": _Point("reserve", "running Reserve plugin {name}: {what}"),
}
_ELSEWHERE = _Point("plugin", "plugin {name} failed: {what}")
_HOLDERS = ("use", "scored", "plugin", "gate")
"""What the steps of the cycle call the plugin whose answer they are looking at."""


def mishap_of(error: Exception) -> Mishap | None:
    """The failure of a user's plugin, or None if nobody but us is to blame."""
    frames = _frames(error)
    return _while_running(error, frames) or _while_reading_an_answer(error, frames)


def _while_running(error: Exception, frames: list[tuple[FrameType, int]]) -> Mishap | None:
    running = [(plugin, frame) for frame, _ in frames if (plugin := _runs(frame)) is not None and _is_users(plugin)]
    if not running:
        return None
    failed = running[-1][0]
    own = [frame for plugin, frame in running if plugin is failed]
    points = [_POINTS[frame.f_code.co_name] for frame in own if frame.f_code.co_name in _POINTS]
    return _mishap(failed, points[0] if points else _ELSEWHERE, _words(error, frames, own[0]))


def _while_reading_an_answer(error: Exception, frames: list[tuple[FrameType, int]]) -> Mishap | None:
    for frame, _ in reversed(frames):
        held = _runs(frame) or _looks_at(frame)
        if held is not None:
            step = "score" if isinstance(held, ScoreUse) else "filter" if isinstance(held, FilterUse) else "plugin"
            plugin = held if isinstance(held, Plugin) else held.plugin
            return _mishap(plugin, _Point(step, _ANSWER), _said(error)) if _is_users(plugin) else None
    return None


def _mishap(plugin: Plugin, point: _Point, what: str) -> Mishap:
    text = point.text.format(name=quoted(plugin.name), what=what)
    return Mishap(Rejection(Code.ERROR, (text,), plugin.name), point.step)


def _frames(error: Exception) -> list[tuple[FrameType, int]]:
    """The calls that led to the error, outermost first, each with the line that it had reached."""
    found, trace = [], error.__traceback__
    while trace is not None:
        found.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return found


def _runs(frame: FrameType) -> Plugin | None:
    """The plugin whose method this is, if it is one."""
    code = frame.f_code
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    return first if isinstance(first, Plugin) else None


def _looks_at(frame: FrameType) -> Plugin | FilterUse | ScoreUse | None:
    """The plugin whose answer is being read there, if one is."""
    held = (frame.f_locals.get(name) for name in _HOLDERS)
    return next((each for each in held if isinstance(each, Plugin | FilterUse | ScoreUse)), None)


def _is_users(plugin: Plugin) -> bool:
    return not type(plugin).__module__.startswith("mooring.")


def _words(error: Exception, frames: list[tuple[FrameType, int]], own: FrameType) -> str:
    """The error in one line, with the last line of the plugin's own file that it went through."""
    path = own.f_code.co_filename
    line = [line for frame, line in frames if frame.f_code.co_filename == path][-1]
    return f"{_said(error)} ({PurePath(path).name}, line {line})"


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
