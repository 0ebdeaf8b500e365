"""Plugin durations, measured in a sample of the cycles.

In a sampled cycle the plugins' methods are wrapped by timers. All other cycles call the methods directly and pay
nothing. Cached results take no time and are not reported.

1. Wrapping changes how a method is looked up on the plugin, never its result.
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
"""The timed methods of plugins, by Kubernetes' name of the extension point."""

Method: TypeAlias = Callable[..., Any]


class PluginTiming:
    """Times the plugins of one profile."""

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
        """Time the plugins while the context is active."""
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
            self._observe()

    def _timed(self, name: str, point: str, method: Method) -> Method:
        key = (name, point)

        def timed(*arguments: Any, **named: Any) -> Any:
            started_s = self._clock.now_s()
            answer = method(*arguments, **named)
            self._spent_s[key] = self._spent_s.get(key, 0.0) + self._clock.now_s() - started_s
            self._status[key] = _status_of(answer)
            return answer

        return timed

    def _observe(self) -> None:
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
    """The plugins that the cycle calls at each point; adapters for users' plugins."""
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
