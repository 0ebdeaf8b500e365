"""`Policy` v1 as values: what schedulers up to Kubernetes 1.22 could be told.

Comes in   a file of kind Policy, through `policy`
Goes out   `Policy` and its parts, frozen; the extenders are those of today's configuration

 1. `predicates` and `priorities` are None where the file does not name them, which means the old default ones. An
    empty list is another thing: none but the mandatory ones.
 2. Extenders are read without regard to upper and lower case: for a while the old files had to say `BindVerb` and
    `CAFile`, later `bindVerb` and `caFile`, and both went on working.
 3. A time-out is a whole number of nanoseconds, as the old files write it, or a text such as `30s`.
"""

from collections.abc import Mapping
from functools import partial
from typing import TypeVar

import msgspec

from mooring.scheduler.config.decode import StrictDecoder
from mooring.scheduler.config.types import (
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    Int32,
    Int64,
    ResourceSpec,
    Settings,
    UtilizationShapePoint,
)

S = TypeVar("S", bound=Settings)


class ServiceAffinity(Settings):
    """All pods of a service go to nodes with the same values of these labels."""

    labels: tuple[str, ...] = ()


class LabelsPresence(Settings):
    """A node must have all of these labels, or, without `presence`, none of them."""

    labels: tuple[str, ...] = ()
    presence: bool = False


class PredicateArgument(Settings):
    """Exactly one of them is given."""

    service_affinity: ServiceAffinity | None = None
    labels_presence: LabelsPresence | None = None


class PredicatePolicy(Settings):
    """A predicate. With an argument the name is whatever somebody liked to call it."""

    name: str
    argument: PredicateArgument | None = None


class ServiceAntiAffinity(Settings):
    """The pods of a service are spread over the values of this label."""

    label: str = ""


class LabelPreference(Settings):
    """Nodes with this label are better, or, without `presence`, those that lack it."""

    label: str = ""
    presence: bool = False


class RequestedToCapacityRatioArguments(Settings):
    """A function from utilization to score, over some resources; none: cpu and memory."""

    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[ResourceSpec, ...] = ()


class PriorityArgument(Settings):
    """Exactly one of them is given."""

    service_anti_affinity: ServiceAntiAffinity | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: RequestedToCapacityRatioArguments | None = None


class PriorityPolicy(Settings):
    """A priority and what it counts for. With an argument the name is whatever somebody liked to call it."""

    name: str
    weight: Int64 = 0
    argument: PriorityArgument | None = None


class Policy(Settings):
    predicates: tuple[PredicatePolicy, ...] | None = None
    priorities: tuple[PriorityPolicy, ...] | None = None
    extenders: tuple[Extender, ...] = ()
    hard_pod_affinity_symmetric_weight: Int32 = 0
    """0: not given."""
    always_check_all_predicates: bool = False
    """Read, and without effect: see docs/policy.md."""


def policy_decoder() -> StrictDecoder:
    """A decoder that reads extenders as the old schedulers did."""
    return StrictDecoder(
        custom={
            Extender: partial(_in_any_case, Extender),
            ExtenderManagedResource: partial(_in_any_case, ExtenderManagedResource),
            ExtenderTLSConfig: partial(_in_any_case, ExtenderTLSConfig),
        }
    )


def _in_any_case(kind: type[S], decoder: StrictDecoder, data: object, path: str) -> S:
    if not isinstance(data, Mapping):
        return decoder.struct(kind, data, path)
    names = {field.encode_name.lower(): field.encode_name for field in msgspec.structs.fields(kind)}
    written = {names.get(str(key).lower(), str(key)): value for key, value in data.items()}
    timeout = written.get("httpTimeout")
    if kind is Extender and isinstance(timeout, int) and not isinstance(timeout, bool):
        written["httpTimeout"] = f"{timeout}ns"
    return decoder.struct(kind, written, path)
