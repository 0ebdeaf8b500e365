"""Delete objects for the fake client.

Input: the stored object, the delete options, and the time. Output: a `Fate`: what to write first, and whether to remove
the object then.

   stored ──delete──▶ terminating (deletionTimestamp: bound pods with a grace period, objects with finalizers)
     │                  │ the kubelet deletes the pod with grace period 0; the last finalizer is removed
     └────────▶ removed ◀──┘

 1. Uid and resourceVersion can be preconditions.
 2. A second deletion can only shorten the grace period of a pod.
 3. A deletion with a grace period increments the generation.
 4. Orphan and foreground deletion are finalizers, which the garbage collector processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from mooring.api.kinds import CORE_EVENT, EVENT, JOB, POD, REPLICATION_CONTROLLER, Kind
from mooring.apiserver.storage.errors import other_revision_in_deletion, other_uid_in_deletion
from mooring.apiserver.storage.stored_form import PlainObject
from mooring.client.interface import Deletion, Propagation
from mooring.kit.clock import format_rfc3339, parse_rfc3339
from tests.fakes.raw_pods import grace_of_deletion_s
from tests.fakes.raw_write import metadata_of

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"

# Their dependents outlive them unless somebody asks otherwise, as they always did.
_ORPHANING_KINDS = frozenset((JOB, REPLICATION_CONTROLLER))
_KINDS_WITHOUT_DEPENDENTS = frozenset((CORE_EVENT, EVENT))


@dataclass(frozen=True, slots=True)
class Fate:
    """`ending` is to be written, if there is one; then the object is to be removed, if `is_gone`."""

    ending: PlainObject | None
    is_gone: bool


PENDING = Fate(None, is_gone=False)
GONE = Fate(None, is_gone=True)


def fate_of(kind: Kind, current: PlainObject, revision: int, deletion: Deletion, now_s: float) -> Fate:
    """What a deletion does. Raises `ConflictError` if it means another object or state."""
    metadata = metadata_of(current)
    _check_preconditions(kind, metadata, revision, deletion)
    is_graceful = False
    if kind is POD:
        if metadata.get("deletionTimestamp"):
            if metadata.get("deletionGracePeriodSeconds"):
                if not _shorten(metadata, deletion, now_s):
                    return PENDING
                is_graceful = True
        else:
            _begin_to_end(metadata, grace_of_deletion_s(current, deletion), now_s)
            is_graceful = True
    finalizers = _finalizers_after(kind, metadata, deletion)
    _set_finalizers(metadata, finalizers)
    if not is_graceful:
        if not finalizers:
            return GONE
        _end_at_once(metadata, now_s)
    has_time_left = bool(metadata["deletionGracePeriodSeconds"])
    return Fate({**current, "metadata": metadata}, is_gone=not finalizers and not has_time_left)


def _check_preconditions(kind: Kind, metadata: PlainObject, revision: int, deletion: Deletion) -> None:
    name = cast(str, metadata["name"])
    if deletion.uid and deletion.uid != metadata["uid"]:
        raise other_uid_in_deletion(kind, name, deletion.uid, metadata["uid"])
    if deletion.revision and deletion.revision != str(revision):
        raise other_revision_in_deletion(kind, name, deletion.revision, revision)


def _begin_to_end(metadata: PlainObject, grace_s: int, now_s: float) -> None:
    metadata["deletionTimestamp"] = format_rfc3339(now_s + grace_s)
    metadata["deletionGracePeriodSeconds"] = grace_s
    _count_generation(metadata)


def _shorten(metadata: PlainObject, deletion: Deletion, now_s: float) -> bool:
    """Give less time to what is ending already; says whether that is so."""
    had_s, grace_s = cast(int, metadata["deletionGracePeriodSeconds"]), deletion.grace_s
    if grace_s is not None and grace_s < 0:
        grace_s = 1
    if grace_s is None or grace_s >= had_s:
        return False
    ends_s = parse_rfc3339(cast(str, metadata["deletionTimestamp"])) - had_s + grace_s
    if ends_s < now_s:
        # Its time is over already. It still ends by itself, unless somebody wants it gone without that.
        ends_s, grace_s = now_s, min(grace_s, 1)
    metadata["deletionTimestamp"] = format_rfc3339(ends_s)
    metadata["deletionGracePeriodSeconds"] = grace_s
    return True


def _end_at_once(metadata: PlainObject, now_s: float) -> None:
    ends = metadata.get("deletionTimestamp")
    if not ends:
        _count_generation(metadata)
    if not ends or parse_rfc3339(cast(str, ends)) > now_s:
        metadata["deletionTimestamp"] = format_rfc3339(now_s)
    metadata["deletionGracePeriodSeconds"] = 0


def _count_generation(metadata: PlainObject) -> None:
    if generation := cast(int, metadata.get("generation", 0)):
        metadata["generation"] = generation + 1


def _finalizers_after(kind: Kind, metadata: PlainObject, deletion: Deletion) -> list[str]:
    had = cast("list[str]", metadata.get("finalizers") or [])
    others = [finalizer for finalizer in had if finalizer not in (ORPHAN, FOREGROUND)]
    match _propagation(kind, had, deletion):
        case Propagation.ORPHAN:
            return [*others, ORPHAN]
        case Propagation.FOREGROUND:
            return [*others, FOREGROUND]
        case Propagation.BACKGROUND:
            return others


def _propagation(kind: Kind, finalizers: list[str], deletion: Deletion) -> Propagation:
    if kind in _KINDS_WITHOUT_DEPENDENTS:
        return Propagation.BACKGROUND
    if deletion.propagation is not None:
        return deletion.propagation
    if ORPHAN in finalizers:
        return Propagation.ORPHAN
    if FOREGROUND in finalizers:
        return Propagation.FOREGROUND
    return Propagation.ORPHAN if kind in _ORPHANING_KINDS else Propagation.BACKGROUND


def _set_finalizers(metadata: PlainObject, finalizers: list[str]) -> None:
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
