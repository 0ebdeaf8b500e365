"""One binding under way: a pod, its node, and how far it has come.

   WAITING ──> READY ──> PREPARING ──> BINDING ──> (bound, or failed)
   Permit      in line   PreBind       Bind

1. Until PreBind is over the binding can be called off: somebody more important may need the node.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Any

from mooring.scheduler.binding.assumptions import Assumption
from mooring.scheduler.framework.plugin import PreBind
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.queue.queued_pod import QueuedPod


class Stage(Enum):
    WAITING = "waiting for Permit"
    READY = "in line"
    PREPARING = "PreBind"
    BINDING = "Bind"


class Binding:
    """What the rooms of the binding cycle hand on."""

    __slots__ = (
        "_worker",
        "assumption",
        "called_off_by",
        "entry",
        "is_pod_gone",
        "is_refused",
        "node_name",
        "pod",
        "pre_binds",
        "profile",
        "stage",
        "started_s",
    )

    def __init__(
        self,
        entry: QueuedPod,
        profile: Profile,
        assumption: Assumption,
        pre_binds: tuple[PreBind, ...],
        started_s: float,
    ) -> None:
        self.entry = entry
        self.profile = profile
        self.assumption = assumption
        self.pod, self.node_name = assumption.pod, assumption.node_name
        self.pre_binds = pre_binds
        """Those that have something to do for this pod."""
        self.started_s = started_s
        self.stage = Stage.READY
        self.called_off_by = ""
        self.is_refused = False
        """The API server has said no: if the pod is on its node all the same, somebody else has put it there."""
        self.is_pod_gone = False
        """The API server has deleted the pod, or is deleting it: a failed binding is a normal event then."""
        self._worker: asyncio.Task[Any] | None = None

    def call_off(self, plugin: str) -> bool:
        """Stops a PreBind that is under way. False if there is none: it is too late, or too early."""
        if self.called_off_by:
            return True
        if self._worker is None:
            return False
        self.called_off_by = plugin
        self._worker.cancel()
        return True

    def prepare(self) -> None:
        """PreBind begins, in the task that calls."""
        self.stage = Stage.PREPARING
        self._worker = asyncio.current_task()

    def prepared(self) -> bool:
        """PreBind is over, and cannot be called off any more. Returns whether it was."""
        worker, self._worker = self._worker, None
        self.stage = Stage.BINDING
        if not self.called_off_by:
            return False
        if worker is not None:
            worker.uncancel()
        return True
