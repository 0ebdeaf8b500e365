"""How long each plugin takes, in a sample of the cycles.

Comes in   the plugins of a profile, and a die that says which cycles are looked at
Goes out   durations by plugin and extension point, to the metrics

In a sampled cycle the plugins' methods are wrapped by a stopwatch, and unwrapped after it; all other cycles run the
methods themselves and pay nothing. What is kept for a signature is not asked, so it takes no time and is not told.

 1. Wrapping changes only how a method is looked up on the plugin, never what it answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from mooring.kit.clock import Clock
from mooring.scheduler.framework.plugin import Plugin, Skip
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Status
from mooring.scheduler.reporting.metrics import Metrics

TIMED = {
    "PreFilter": ("pre_filter",),
    "Filter": ("filter", "filter_row"),
    "PostFilter": ("post_filter",),
    "PreScore": ("pre_score",),
    "Score": ("score", "score_row"),
    "ScoreExtensionNormalize": ("normalize",),
}
"""The methods of plugins that are timed, by what Kubernetes calls their point."""

Method: TypeAlias = Callable[..., Any]


class PluginTiming:
    """The stopwatch of one profile."""

    def __init__(self, profile: Profile, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._profile = profile.scheduler_name
        self._spent_s: dict[tuple[str, str], float] = {}
        self._status: dict[tuple[str, str], str] = {}
        self._wrapped: list[tuple[Plugin, str, Method, Method | None]] = [
            (plugin, method, self._timed(plugin.name, point, getattr(plugin, method)), vars(plugin).get(method))
            for plugin, point in _called_at(profile)
            for method in TIMED[point]
            if hasattr(plugin, method)
        ]

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Times the plugins in the cycle inside."""
        for plugin, method, timed, _ in self._wrapped:
            vars(plugin)[method] = timed
        try:
            yield
        finally:
            for plugin, method, _, guarded in self._wrapped:
                if guarded is not None:
                    vars(plugin)[method] = guarded
                else:
                    del vars(plugin)[method]
            self._tell()

    def _timed(self, name: str, point: str, method: Method) -> Method:
        key = (name, point)

        def timed(*arguments: Any, **named: Any) -> Any:
            started_s = self._clock.now_s()
            answer = method(*arguments, **named)
            self._spent_s[key] = self._spent_s.get(key, 0.0) + self._clock.now_s() - started_s
            self._status[key] = _status_of(answer)
            return answer

        return timed

    def _tell(self) -> None:
        points_s: dict[str, float] = {}
        for (name, point), spent_s in self._spent_s.items():
            status = self._status[(name, point)]
            self._metrics.plugin_duration.labels(name, point, status).observe(spent_s)
            if point in ("PreFilter", "Filter", "PreScore", "Score"):
                self._metrics.plugin_evaluations.labels(name, point, self._profile).inc()
            points_s[point] = points_s.get(point, 0.0) + spent_s
        for point, spent_s in points_s.items():
            self._metrics.point_duration.labels(point, "Success", self._profile).observe(spent_s)
        self._spent_s.clear()
        self._status.clear()


def _called_at(profile: Profile) -> Iterator[tuple[Plugin, str]]:
    """What the cycle calls at each point: the plugins, and adapters for users' plugins."""
    yield from ((plugin, "PreFilter") for plugin in profile.pre_filters)
    yield from ((use.plugin, "Filter") for use in profile.filters)
    yield from ((plugin, "PostFilter") for plugin in profile.post_filters)
    yield from ((use.plugin, "PreScore") for use in profile.scores if use.has_pre_score)
    for point in ("Score", "ScoreExtensionNormalize"):
        yield from ((use.plugin, point) for use in profile.scores)


def _status_of(answer: object) -> str:
    if isinstance(answer, Status):
        return answer.code.value
    return "Skip" if isinstance(answer, Skip) else "Success"
