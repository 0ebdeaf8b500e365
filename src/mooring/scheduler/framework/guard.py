"""The guard: whatever a user's plugin raises or returns by mistake becomes a `PluginError` that names the plugin.

`Registry.build` puts a guard around every plugin that does not come with the scheduler. Callers catch `PluginError`
and nothing else. The adapter of a plugin for one node at a time (`adapter.py`) calls its `filter` and `score`, and
catches what they raise for each node.

1. Everything is caught, `SystemExit` and `CancelledError` included: a rule with a bug fails its pod, not the scheduler.
   Ctrl-C of a command and the cancellation of a binding are no errors of the plugin, and pass. Queueing hints and the
   follow-up of a PostFilter plugin are functions of the plugin that the scheduler calls later: their callers catch
   what they raise in the same way (`is_interrupt`).
2. The results of `filter`, `score` and `normalize` are checked: an integer array with one place per row, and scores
   from 0 to 100.
3. Built-in plugins have no guard. What they raise is a bug of the scheduler.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import signal
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from types import NoneType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from mooring.api.field_errors import quoted
from mooring.client.errors import ClientError
from mooring.scheduler.cache.arrays import length_of
from mooring.scheduler.framework.node_plugins import FilterPlugin, ScorePlugin
from mooring.scheduler.framework.obstacle import Distances, Obstacle
from mooring.scheduler.framework.plugin import SCORE_MAX, Plugin, Proceed, Skip
from mooring.scheduler.framework.post_filter import PostFilterResult
from mooring.scheduler.framework.status import Code, Status


class PluginError(Exception):
    """A user's plugin failed at an extension point."""

    def __init__(self, plugin: str, step: str, text: str, what: str) -> None:
        super().__init__(what)
        self.status = Status(Code.ERROR, (text,), plugin)
        """What kube-scheduler would report of such a failure."""
        self.step = step
        """The value of `Decision.error`."""


_Check: TypeAlias = Callable[[Plugin, "_Point", Any, tuple[Any, ...]], Any]


class _Point(NamedTuple):
    step: str
    text: str


_PRE_FILTER = _Point("prefilter", "running PreFilter plugin {name}: {what}")
_FILTER = _Point("filter", "running {name} filter plugin: {what}")
_PRE_SCORE = _Point("prescore", "running PreScore plugin {name}: {what}")
_SCORE = _Point("score", "running Score plugins: plugin {name} failed with: {what}")
_NORMALIZE = _Point("score", "running Normalize on Score plugins: plugin {name} failed with: {what}")
_ELSEWHERE = _Point("plugin", "plugin {name} failed: {what}")
_POINTS: Mapping[str, _Point] = {
    "pre_enqueue": _Point("preenqueue", "running PreEnqueue plugin {name}: {what}"),
    "queue_key": _Point("queuesort", "running QueueSort plugin {name}: {what}"),
    "epoch": _ELSEWHERE,
    "pre_filter": _PRE_FILTER,
    "explain_rejection": _PRE_FILTER,
    "filter": _FILTER,
    "filter_row": _FILTER,
    "reasons": _FILTER,
    "snapshot": _FILTER,
    "measures": _FILTER,
    "contribution": _FILTER,
    "filter_adjusted": _FILTER,
    "explain": _FILTER,
    "distances": _FILTER,
    "post_filter": _Point("postfilter", "running PostFilter plugin {name}: {what}"),
    "has_score": _PRE_SCORE,
    "pre_score": _PRE_SCORE,
    "score": _SCORE,
    "score_row": _SCORE,
    "normalize": _NORMALIZE,
    "reserve": _Point("reserve", "running Reserve plugin {name}: {what}"),
    "unreserve": _ELSEWHERE,
    "released": _ELSEWHERE,
    "permit": _Point("permit", "running Permit plugin {name}: {what}"),
    "has_work": _Point("prebind", "running PreBindPreFlight plugin {name}: {what}"),
    "pre_bind": _Point("prebind", "running PreBind plugin {name}: {what}"),
    "bind": _Point("bind", "running Bind plugin {name}: {what}"),
    "post_bind": _ELSEWHERE,
}
_ASYNC_METHODS = ("released", "pre_bind", "bind")
_UNUSABLE = "plugin {name} returned an invalid result: {what}"
_INVALID_SCORE = (
    "plugin {name} returns an invalid score {what}, it should in the range of [0, {best}] after normalizing"
)


def guard(plugin: Plugin) -> Plugin:
    """The plugin, with every extension point guarded. Calls among its own methods are guarded as well."""
    called_by_adapter = [
        method for method, kind in (("filter", FilterPlugin), ("score", ScorePlugin)) if isinstance(plugin, kind)
    ]
    for method, point in _POINTS.items():
        if hasattr(plugin, method) and method not in called_by_adapter:
            vars(plugin)[method] = _guarded(plugin, method, point)
    return plugin


def score_error(plugin: str, what: str) -> PluginError:
    """A score that failed for one node."""
    return _error(plugin, _SCORE, what)


def describe(error: BaseException, plugin: type[Plugin]) -> str:
    """The error in one line, with the line number in the file of the plugin or of one of its base classes."""
    try:
        message = str(error)
    except BaseException:  # an exception class of the user's with a `__str__` that raises
        message = ""
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    for file in dict.fromkeys(_file_of(base) for base in plugin.__mro__):
        lines = [frame.lineno for frame in frames if frame.filename == file]
        if lines:
            return f"{text} ({PurePath(file).name}, line {lines[-1]})"
    return text


def is_interrupt(error: BaseException) -> bool:
    """Whether the call ends for another reason than the plugin: Ctrl-C, or the cancellation of the task."""
    if isinstance(error, KeyboardInterrupt):
        return signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if isinstance(error, asyncio.CancelledError):
        try:
            task = asyncio.current_task()
        except RuntimeError:  # no event loop
            return False
        return task is not None and task.cancelling() > 0
    return False


def _guarded(plugin: Plugin, method: str, point: _Point) -> Callable[..., Any]:
    original = getattr(plugin, method)
    check = _CHECKS.get(method)

    @functools.wraps(original)
    def call(*arguments: Any) -> Any:
        try:
            result = original(*arguments)
        except PluginError:
            raise
        except BaseException as error:
            if is_interrupt(error):
                raise
            raise _error(plugin.name, point, describe(error, type(plugin))) from error
        return check(plugin, point, result, arguments) if check is not None else result

    @functools.wraps(original)
    async def call_async(*arguments: Any) -> Any:
        try:
            return await original(*arguments)
        except (PluginError, ClientError):
            raise
        except BaseException as error:
            if is_interrupt(error):
                raise
            raise _error(plugin.name, point, describe(error, type(plugin))) from error

    # By the name of the method: a user may write one without `async` that returns a coroutine.
    return call_async if method in _ASYNC_METHODS else call


def _error(plugin: str, point: _Point, what: str) -> PluginError:
    return PluginError(plugin, point.step, point.text.format(name=quoted(plugin), what=what), what)


def _file_of(plugin: type) -> str:
    try:
        return inspect.getfile(plugin)
    except (TypeError, OSError):  # a class that was made at a prompt, or is written in C
        return ""


def _check_array(plugin: Plugin, point: _Point, result: Any, rows: Any) -> Any:
    expected = f"expected an integer array with {length_of(rows)} places"
    if not isinstance(result, np.ndarray):
        raise _unusable(plugin, point, f"found {type(result).__name__}, {expected}")
    if result.dtype.kind not in "iub" or result.shape != (length_of(rows),):
        raise _unusable(plugin, point, f"found {result.dtype} {result.shape}, {expected}")
    return result


def _unusable(plugin: Plugin, point: _Point, what: str) -> PluginError:
    return PluginError(plugin.name, point.step, _UNUSABLE.format(name=quoted(plugin.name), what=what), what)


def _check_filter(plugin: Plugin, point: _Point, result: Any, arguments: tuple[Any, ...]) -> Any:
    return _check_array(plugin, point, result, arguments[1])


def _check_score(plugin: Plugin, point: _Point, result: Any, arguments: tuple[Any, ...]) -> Any:
    scores = _check_array(plugin, point, result, arguments[1])
    return scores if getattr(plugin, "normalizes", False) else _check_range(plugin, point, scores)


def _check_normalized(plugin: Plugin, point: _Point, result: Any, arguments: tuple[Any, ...]) -> Any:
    return _check_range(plugin, point, _check_array(plugin, point, result, arguments[2]))


def _check_range(plugin: Plugin, point: _Point, scores: Any) -> Any:
    lowest, highest = (int(scores.min()), int(scores.max())) if len(scores) else (0, 0)
    if lowest < 0 or highest > SCORE_MAX:
        what = str(lowest if lowest < 0 else highest)
        text = _INVALID_SCORE.format(name=quoted(plugin.name), what=what, best=SCORE_MAX)
        raise PluginError(plugin.name, point.step, text, what)
    return scores


def _check_score_of_row(plugin: Plugin, point: _Point, result: Any, arguments: tuple[Any, ...]) -> Any:
    if isinstance(result, bool) or not isinstance(result, int):
        raise _unusable(plugin, point, f"found {result!r}, expected a whole number")
    return result if getattr(plugin, "normalizes", False) else int(_check_range(plugin, point, np.array([result]))[0])


def _check_obstacles(plugin: Plugin, point: _Point, result: Any, arguments: tuple[Any, ...]) -> Any:
    if not isinstance(result, Sequence) or not all(isinstance(item, Obstacle) for item in result):
        raise _unusable(plugin, point, f"found {result!r}, expected a sequence of obstacles")
    return result


def _check_distances(plugin: Plugin, point: _Point, result: Any, arguments: tuple[Any, ...]) -> Any:
    shape = (length_of(arguments[1]),)
    if not isinstance(result, Distances) or any(np.shape(item) != shape for item in result):
        raise _unusable(plugin, point, f"found {result!r}, expected Distances with {shape[0]} places")
    return result


def _check_type(*types: type) -> _Check:
    def check(plugin: Plugin, point: _Point, result: Any, arguments: tuple[Any, ...]) -> Any:
        if not isinstance(result, types):
            raise _error(plugin.name, point, f"it returned {result!r}, which is not a result of this extension point")
        return result

    return check


_check_status_type = _check_type(Status, NoneType)


def _check_status(plugin: Plugin, point: _Point, result: Any, arguments: tuple[Any, ...]) -> Any:
    """The caller treats every Status as a rejection, so a success becomes None."""
    if isinstance(result, Status) and result.is_success:
        return None
    return _check_status_type(plugin, point, result, arguments)


_CHECKS: Mapping[str, _Check] = {
    "pre_enqueue": _check_status,
    "pre_filter": _check_type(Proceed, Skip, Status),
    "post_filter": _check_type(PostFilterResult),
    "reserve": _check_status,
    "filter": _check_filter,
    "filter_adjusted": _check_filter,
    "explain": _check_obstacles,
    "explain_rejection": _check_obstacles,
    "distances": _check_distances,
    "score": _check_score,
    "score_row": _check_score_of_row,
    "normalize": _check_normalized,
}
