"""What happens in a cluster, as far as it can make a pod schedulable, and which of it wakes whom.

Comes in   changes that `intake` saw; plugins' declarations of what can help the pods that they refuse
Goes out   `ClusterEvent` and `Wake`, to the queue

A pod that was refused sleeps until something happens that one of the plugins that refused it has declared (`wakes`).
A wake may have a hint: a function that looks at the change and at the pod, and says whether it can help.

 1. A hint never says no when the change can help, except where kube-scheduler's own does. If it fails, the pod is
    woken.
 2. The names are Kubernetes' own: `Label` of an event is what metrics and logs call it.
 3. What `old` and `new` are follows from the subject: `PodInfo`s for pods, views for everything else; `old` is None
    for ADD, `new` is None for DELETE.
 4. A kind that has no subject of its own, a custom one say, is its own subject: its row, with the view to read it by.
 5. A record that is told as `old` still has the node, or the nomination, that the pod lost: hints ask for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import Any, NamedTuple, TypeAlias

from mooring.api.kinds import Kind
from mooring.scheduler.cache.pods import PodInfo


class Action(IntFlag):
    """What happened to an object."""

    NONE = 0
    ADD = 1 << 0
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    """Also: the node is not cordoned any more."""
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    UPDATE_POD_LABEL = 1 << 8
    UPDATE_POD_SCALE_DOWN = 1 << 9
    UPDATE_POD_TOLERATION = 1 << 10
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 11
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 12
    UPDATE = ((1 << 13) - 1) & ~0b11
    """Any update: of the event, that it is none of the special ones; of a wake, that all of them count."""
    ALL = (1 << 13) - 1


class Subject(Enum):
    """What an event is about."""

    ASSIGNED_POD = "AssignedPod"
    """A pod with a node, or one that is assumed to have it."""
    PENDING_POD = "UnschedulablePod"
    """The sleeping pod itself."""
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    NAMESPACE = "Namespace"
    SERVICE = "Service"
    ANY = "*"
    """Of an event: wakes everybody. Of a wake: whatever happens."""


About: TypeAlias = Subject | Kind


class ClusterEvent(NamedTuple):
    subject: About
    action: Action
    custom_label: str = ""

    @property
    def label(self) -> str:
        """What Kubernetes calls it in metrics: `NodeUpdateNodeLabel`, `AssignedPodDelete`."""
        return self.custom_label or f"{_called(self.subject)}{_WORDS.get(self.action, '')}"


Hint: TypeAlias = Callable[[PodInfo, Any, Any], bool]
"""(sleeping pod, old, new): whether the change can make the pod schedulable, as far as this plugin is concerned."""


@dataclass(frozen=True, slots=True)
class Wake:
    """A kind of event that can help a pod which this plugin refused; None as hint: it always may."""

    subject: About
    actions: Action
    hint: Hint | None = None
    by_signature: bool = False
    """The hint reads only the signature of the sleeping pod, so that its answer holds for all pods of the signature."""
    by_both_signatures: bool = False
    """And of the other pod, which has a node, it reads only the signature: its answer holds for the next one, too."""

    def __post_init__(self) -> None:
        if not isinstance(self.subject, Kind):
            return
        if self.subject.view is None:
            raise ValueError(f"a wake by {self.subject} needs a view to read it by: Kind(…, view=…)")
        own = _subjects_of(self.subject)
        if own:
            raise ValueError(f"a wake by {self.subject} is a wake by {' or '.join(map(str, own))}")
        view = self.subject.view
        if (view.api_version, view.kind) != (self.subject.api_version, self.subject.kind):
            # Objects are kept by their view: those of two kinds would be taken for each other.
            said = f"{view.api_version} {view.kind}".strip() or "no kind"
            raise ValueError(f"a wake by {self.subject} needs a view of that kind; {view.__name__} is one of {said}")

    def hears(self, event: ClusterEvent) -> bool:
        """Whether this wake is about such events."""
        if self.subject is not Subject.ANY and not is_same(self.subject, event.subject):
            return False
        # UPDATE is several bits: a wake for one special update is not about an update that is none of them.
        return bool(event.action) and self.actions & event.action == event.action


ANYTHING = Wake(Subject.ANY, Action.ALL)

ASSIGNED_POD_ADD = ClusterEvent(Subject.ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_UPDATE = ClusterEvent(Subject.ASSIGNED_POD, Action.UPDATE)
ASSIGNED_POD_DELETE = ClusterEvent(Subject.ASSIGNED_POD, Action.DELETE)
"""Also: a node is no longer assumed for a pod, or promised to it."""
PENDING_POD_ADD = ClusterEvent(Subject.PENDING_POD, Action.ADD)
PENDING_POD_UPDATE = ClusterEvent(Subject.PENDING_POD, Action.UPDATE)
PENDING_POD_DELETE = ClusterEvent(Subject.PENDING_POD, Action.DELETE)
NODE_ADD = ClusterEvent(Subject.NODE, Action.ADD)
NODE_DELETE = ClusterEvent(Subject.NODE, Action.DELETE)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(Subject.ANY, Action.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(Subject.ANY, Action.ALL, "ForceActivate")


def is_same(subject: About, other: About) -> bool:
    """Whether they are about the same. A plugin may make the row of its kind anew each time that it is asked."""
    if subject is other or isinstance(subject, Subject) or isinstance(other, Subject):
        return subject is other
    return subject.view is other.view and subject.resource == other.resource


def _called(subject: About) -> str:
    """A kind without a name of its own is called as kube-scheduler's plugins spell it: `widgets.v1.example.com`."""
    if isinstance(subject, Subject):
        return subject.value
    version = subject.api_version.rpartition("/")[2]
    return ".".join(part for part in (subject.plural, version, subject.group) if part)


def _subjects_of(kind: Kind) -> tuple[Subject, ...]:
    if kind.kind == "Pod" and not kind.group:
        return Subject.ASSIGNED_POD, Subject.PENDING_POD
    name = f"{kind.group}/{kind.kind}" if kind.group else kind.kind
    return tuple(subject for subject in Subject if subject.value == name)


def _words(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


_WORDS = {action: _words(name) for name, action in Action.__members__.items() if action}
"""`UpdateNodeLabel`. A mixture of actions is what a wake may hear, and never what happened: it has no name."""
