"""Events have two names: they are stored as core/v1 and also served as events.k8s.io/v1.

Input: an event in either form.
Output: the same event in the other one.

kube-apiserver keeps all events in one folder in core's form, whichever API they were written through: `kubectl get
events` shows what the scheduler reported through the newer one. `mooring.api.event_forms` says how the forms differ.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.event_forms import CORE_NAMES, served_form, stored_form
from mooring.api.kinds import CORE_EVENT, EVENT, Kind
from mooring.apiserver.storage.stored_form import PlainObject, decoded, encoded, with_revision
from mooring.client.interface import Selection


def stored_kind(kind: Kind) -> Kind:
    """The kind in whose form objects of a kind are stored."""
    return CORE_EVENT if kind is EVENT else kind.stored_as or kind


def inward(kind: Kind, plain: Mapping[str, object]) -> Mapping[str, object]:
    """An object as it is stored."""
    return stored_form(plain) if kind is EVENT else plain


def outward_plain(kind: Kind, plain: PlainObject) -> PlainObject:
    """A stored object as the kind has it."""
    if kind.served is not None:
        return kind.served(plain)
    return served_form(plain) if kind is EVENT else plain


def is_stored_otherwise(kind: Kind) -> bool:
    """Whether stored objects must be changed before they are handed out."""
    return kind is EVENT or kind.served is not None


def outward(kind: Kind, value: bytes, revision: int) -> bytes:
    """A stored object as clients of the kind get it."""
    return with_revision(translated(kind, value) if is_stored_otherwise(kind) else value, revision)


def translated(kind: Kind, value: bytes) -> bytes:
    """As `outward`, without changing the resourceVersion."""
    return encoded(outward_plain(kind, decoded(value)))


def inward_selection(kind: Kind, selection: Selection) -> Selection:
    """A selection by the fields that are stored."""
    if kind is not EVENT or not selection.fields:
        return selection
    fields = ",".join(_stored_field(term) for term in selection.fields.split(","))
    return Selection(selection.namespace, selection.labels, fields)


def _stored_field(term: str) -> str:
    for newer, core in CORE_NAMES.items():
        if term.startswith((f"{newer}.", f"{newer}=", f"{newer}!")):
            return core + term.removeprefix(newer)
    return term
