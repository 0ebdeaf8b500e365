"""Names in writes that can be exchanged: those by which twins differ, and by which nothing is decided.

Comes in   an object as it is stored or sent
Goes out   the names in it, always in the same order and number for twins

 1. A name is what somebody made up: the object's own, its node's, its set's; in labels and owners only what has a digit
    and a dash, so that no word of the API is taken for one.
 2. A name that is also a manager's is none: managers have an order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from mooring.api.kinds import DEPLOYMENT, POD, REPLICA_SET, Kind
from mooring.client.interface import JsonObject
from mooring.client.local_form import part_of

NOBODY = b"\x03"
"""In place of a name that is not there. No JSON holds such a character."""
NAMES_AROUND_MAX = 8
UID_LENGTH = 36
HEADS_REMEMBERED_MAX = 1_024

_encode = msgspec.json.Encoder().encode
_NODE_NAME = b'"nodeName":"'
_LABELS = re.compile(rb'"labels":\{([^}]*)\}')
_OWNERS = re.compile(rb'"ownerReferences":\[([^\]]*)\]')
_GENERATE_NAME = re.compile(rb'"generateName":"([^"\\]+)"')
_GIVEN = re.compile(rb'"((?=[a-z.-]*\d)[a-z0-9.]{1,28}-[a-z0-9.-]{1,28})"|"pod-template-hash":"([a-z0-9]{8,10})"')
"""Names that somebody made up, with a digit: a word of the API or an amount never looks like that."""
_SET_TOLD_OF = re.compile(rb'et \\"([a-z0-9.-]+\\)"')
"""The (replica) set that a condition tells of. Quotes have a backslash there: that of the second one is taken along."""
_END_OF_HEAD = b'"managedFields":'
_TOKEN_VOLUME = re.compile(rb'"(kube-api-access-[a-z0-9]{5})"')
_SURELY_VALID = re.compile(r"[a-z0-9][a-z0-9-]{0,61}[a-z0-9]")


def names_in_patched(kind: Kind, name: bytes, stored: bytes) -> Sequence[bytes]:
    """Of an object that is patched."""
    if kind is not POD:
        return (name, NOBODY)
    names = (name, _node_name_in(stored))
    return (*names, *_names_left(_names_in_head(stored[: stored.find(_END_OF_HEAD)]), stored, names))


def names_in_replaced(kind: Kind, name: bytes, stored: bytes, wanted: bytes) -> Sequence[bytes] | None:
    """Of a workload whose status is replaced. None if its name has a meaning."""
    if _is_manager(name, stored):
        return None
    told = (_SET_TOLD_OF.search(wanted) or _SET_TOLD_OF.search(stored)) if kind is DEPLOYMENT else None
    names = (name, told[1] if told is not None else NOBODY)
    return (*names, *_names_around(stored, names))


def names_in_creation(kind: Kind, body: JsonObject, encoded: bytes) -> Sequence[bytes]:
    """Of a new object."""
    if kind is POD:
        return _names_around(encoded)
    if kind is not REPLICA_SET:
        return _names_in_event(body)
    # Its name is its Deployment's and a hash, and might be too long. Another one is no name then, but a text.
    name = str(part_of(body, "metadata").get("name"))
    names = (name.encode() if _SURELY_VALID.fullmatch(name) else NOBODY,)
    return (*names, *_names_around(encoded, names))


def token_volume_in(pod: bytes) -> bytes | None:
    """What the volume with its token is called, which the server has put into a pod."""
    found = _TOKEN_VOLUME.search(pod)
    return found[1] if found is not None else None


def _node_name_in(pod: bytes) -> bytes:
    # Not by an expression: to find one word in a text, they take ten times as long.
    start = pod.find(_NODE_NAME) + len(_NODE_NAME)
    return pod[start : pod.find(b'"', start)] if start > len(_NODE_NAME) else NOBODY


def _names_around(text: bytes, known: Sequence[bytes] = ()) -> Sequence[bytes]:
    """The names by which an object belongs to others: of its set, and in its labels. The same everywhere in a set."""
    return _names_left(_names_given(text), text, known)


def _names_left(found: Sequence[bytes], text: bytes, known: Sequence[bytes]) -> Sequence[bytes]:
    return [name for name in found if name not in known and not _is_manager(name, text)][:NAMES_AROUND_MAX]


def _names_given(text: bytes) -> Sequence[bytes]:
    found: dict[bytes, None] = {}
    for part in (_GENERATE_NAME.search(text), _LABELS.search(text), _OWNERS.search(text)):
        for name, hashed in _GIVEN.findall(part[0]) if part is not None else ():
            found[name or hashed] = None
    return tuple(name for name in found if len(name) != UID_LENGTH)


_names_in_head = lru_cache(maxsize=HEADS_REMEMBERED_MAX)(_names_given)
"""Of how a pod begins: all pods of a set begin alike."""


def _is_manager(name: bytes, text: bytes) -> bool:
    """Whether somebody of that name has written to the object. Managers have an order."""
    return b'"manager":"%b"' % name in text


def _names_in_event(event: JsonObject) -> tuple[bytes, ...]:
    """What an event tells: that is never judged."""
    regarding = part_of(event, "regarding") or part_of(event, "involvedObject")
    told = (
        part_of(event, "metadata").get("name"),
        regarding.get("name"),
        regarding.get("resourceVersion"),
        event.get("note") or event.get("message"),
    )
    return tuple(_encode(text)[1:-1] if text else NOBODY for text in told)
