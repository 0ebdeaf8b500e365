"""Who hears what: from an event and the plugins that refused a pod to whether the pod is worth another try.

Comes in   the wakes that plugins declare; an event; who refused the pod
Goes out   a `Verdict`: sleep on, try again after the backoff, or try again at once

 1. Only plugins that refused the pod are asked, and of them only those that declared such events.
 2. The verdict is the best that any of them gives: at once from a plugin that the pod is pending on, after the backoff
    from one that refused it. Who could not improve it is not asked.
 3. A hint that fails counts as a yes, and is logged with the name of its plugin.
 4. A plugin that the profile does not know (an extender, or one that is misnamed) hears everything: better to try in
    vain than to strand a pod.
 5. An event about anything (`Subject.ANY`, all actions) wakes everybody, after the backoff, and nobody is asked.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import ANYTHING, Action, ClusterEvent, Hint, Subject, Wake
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.waking import wakes_of

logger = logging.getLogger(__name__)

EXTENDER: Final = "Extender"
"""Stands for all extenders among the rejectors."""


class Verdict(IntEnum):
    """Whether a pod is worth another try, and how soon."""

    SLEEP = 0
    AFTER_BACKOFF = 1
    AT_ONCE = 2


class Question(NamedTuple):
    """A hint to ask, and what its yes is worth."""

    plugin: str
    hint: Hint
    worth: Verdict


class Hearing(NamedTuple):
    """How certain plugins together hear a certain kind of event."""

    certain: Verdict
    """What is said without looking at the pod or the change."""
    by_signature: tuple[Question, ...]
    """To be asked once for all pods of a signature."""
    by_pod: tuple[Question, ...]
    is_by_both_signatures: bool = False
    """Whether the answer follows from the signatures of the two pods alone."""

    def verdict(self, pod: PodInfo, old: Any, new: Any) -> Verdict:
        return ask(self.by_pod, ask(self.by_signature, self.certain, pod, old, new), pod, old, new)


FOR_EVERYBODY: Final = Hearing(Verdict.AFTER_BACKOFF, (), ())


def ask(questions: Sequence[Question], so_far: Verdict, pod: PodInfo, old: Any, new: Any) -> Verdict:
    """The best verdict of those that can improve the one so far."""
    for question in questions:
        if question.worth > so_far and _says_yes(question, pod, old, new):
            so_far = question.worth
    return so_far


def is_for_everybody(event: ClusterEvent) -> bool:
    return event.subject is Subject.ANY and event.action == Action.ALL


class Ears:
    """What the plugins of all profiles hear."""

    __slots__ = ("_heard", "_wakes")

    def __init__(self, profiles: Mapping[str, Profile], *, with_extenders: bool) -> None:
        self._wakes: dict[str, dict[str, tuple[Wake, ...]]] = {
            name: dict(wakes_of(profile)) | ({EXTENDER: (ANYTHING,)} if with_extenders else {})
            for name, profile in profiles.items()
        }
        self._heard: dict[ClusterEvent, bool] = {}

    def is_heard(self, event: ClusterEvent) -> bool:
        """Whether any plugin of any profile hears such events."""
        heard = self._heard.get(event)
        if heard is None:
            everybody = (wakes for plugins in self._wakes.values() for wakes in plugins.values())
            heard = is_for_everybody(event) or any(wake.hears(event) for wakes in everybody for wake in wakes)
            self._heard[event] = heard
        return heard

    def hears(self, scheduler_name: str, plugin: str, event: ClusterEvent) -> bool:
        return any(wake.hears(event) for wake in self._wakes[scheduler_name].get(plugin, (ANYTHING,)))

    def hearing(
        self, scheduler_name: str, rejectors: frozenset[str], pending: frozenset[str], event: ClusterEvent
    ) -> Hearing | None:
        """How plugins that refused a pod hear an event; None if none of them does."""
        if is_for_everybody(event):
            return FOR_EVERYBODY
        certain = Verdict.SLEEP
        by_signature: list[Question] = []
        by_pod: list[Question] = []
        is_by_both_signatures = True
        for plugin, wake in self._wakes_of(scheduler_name, rejectors | pending):
            if not wake.hears(event):
                continue
            worth = Verdict.AT_ONCE if plugin in pending else Verdict.AFTER_BACKOFF
            is_by_both_signatures = is_by_both_signatures and wake.by_both_signatures
            if wake.hint is None:
                certain = max(certain, worth)
            else:
                (by_signature if wake.by_signature else by_pod).append(Question(plugin, wake.hint, worth))
        if certain is Verdict.SLEEP and not by_signature and not by_pod:
            return None
        return Hearing(certain, tuple(by_signature), tuple(by_pod), is_by_both_signatures)

    def _wakes_of(self, scheduler_name: str, plugins: frozenset[str]) -> Iterator[tuple[str, Wake]]:
        known = self._wakes[scheduler_name]
        for plugin, wakes in known.items():
            if plugin in plugins:
                for wake in wakes:
                    yield plugin, wake
        for plugin in sorted(plugins - known.keys()):
            yield plugin, ANYTHING


def _says_yes(question: Question, pod: PodInfo, old: Any, new: Any) -> bool:
    try:
        return question.hint(pod, old, new)
    except Exception:
        logger.exception("a hint of plugin %s failed for pod %s, which is woken", question.plugin, pod.key)
        return True
