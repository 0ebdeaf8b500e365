"""The extension points: the doors through which plugins take part in a pod's journey.

Comes in   nothing
Goes out   `ExtensionPoint`, named as Kubernetes names it in a configuration and in messages

 1. The order of the members is the order of the journey, from the queue to the binding; the two placement points,
    which look at a group of pods instead of one pod, come last.
 2. A member's value is its field in a profile's `plugins`; `multiPoint` is not among them, because no plugin is
    ever called there.
"""

from enum import Enum


class ExtensionPoint(Enum):
    PRE_ENQUEUE = "preEnqueue"
    QUEUE_SORT = "queueSort"
    PRE_FILTER = "preFilter"
    FILTER = "filter"
    POST_FILTER = "postFilter"
    PRE_SCORE = "preScore"
    SCORE = "score"
    RESERVE = "reserve"
    PERMIT = "permit"
    PRE_BIND = "preBind"
    BIND = "bind"
    POST_BIND = "postBind"
    PLACEMENT_GENERATE = "placementGenerate"
    PLACEMENT_SCORE = "placementScore"

    @property
    def config_field(self) -> str:
        """The field of `plugins` in a configuration: "preFilter"."""
        return self.value

    @property
    def attribute(self) -> str:
        """The same field as a Python name: "pre_filter"."""
        return self.name.lower()

    @property
    def plugin_type(self) -> str:
        """What Kubernetes calls a plugin that serves this point: "PreFilterPlugin"."""
        return f"{self.value[0].upper()}{self.value[1:]}Plugin"

    @property
    def is_weighted(self) -> bool:
        """Whether the answers of the plugins at this point are added up, each times a weight."""
        return self in (ExtensionPoint.SCORE, ExtensionPoint.PLACEMENT_SCORE)
