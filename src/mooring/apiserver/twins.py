"""Twins: what was worked out for one object holds for the next one that is like it but for names and times.

Comes in   what a write is made of, as JSON: the object as it is stored, what is wanted; and the names in it
Goes out   what the write makes of it, as it is stored; None if nothing like it was seen before

A Deployment has 10,000 pods which differ in their names, uids, addresses and times. Reading, merging, noting who
manages what and validating comes to the same for all of them, and costs far more than putting other names and
times into what came out the first time.

    {"name":"web-x7k2p", … "podIP":"10.0.3.2"}    like    {"name":"web-9zq4d", … "podIP":"10.0.8.2"}

 1. Taken for exchangeable are: names that the caller gives; uids, IPv4 addresses, times, ids of containers and names of
    token volumes, if they are whole strings. Everything else is compared to the letter.
 2. Equal values stay equal and different ones different, and those of a sort keep their order: of times and of the keys
    of a list, the order decides.
 3. Nothing is ever worked out here. What is not known is done by the registry, and learnt from what it stored.
 4. What was learnt is forgotten, the oldest first, when there are more than `TEMPLATES_MAX`.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

TEMPLATES_MAX = 4_096
NAMES_MAX = 12

_BYTE = rb"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_TIME = rb"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{6})?Z"
_UID = rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ADDRESS = rb"(?:%b\.){3}%b" % (_BYTE, _BYTE)
_CONTAINER = rb"(?:containerd|docker|mooring)://[0-9a-f]{64}"
_MACHINE = rb"[0-9a-f]{32}"
_TOKEN_VOLUME = rb"kube-api-access-[a-z0-9]{5}"
# A key of managed fields holds JSON in a string: there the quotes have a backslash. The look ahead keeps most strings
# out by their first four letters, without trying one sort after the other: this is the hottest expression of a cluster
# that starts pods. (Digits and points, or the beginnings of containerd, docker, mooring and kube-api.)
_VALUES = b"|".join((_TIME, _UID, _ADDRESS, _CONTAINER, _MACHINE, _TOKEN_VOLUME))
_LOOK_CLOSER = rb"(?=[0-9a-fkm][0-9a-f.ou][0-9a-f.cnob][0-9a-f.tkre])"
_EXCHANGEABLE = re.compile(rb'"' + _LOOK_CLOSER + rb"(" + _VALUES + rb')(?=\\?")')
_EXCHANGEABLE_OR_MARK = re.compile(rb'"(\x01\d+|' + _VALUES + rb')(?=\\?")')
_MARKS = tuple(b"\x01%d" % number for number in range(NAMES_MAX + 1))
"""In place of names. No JSON holds such a character."""
_MARKS_QUOTED = tuple(b'"%b"' % mark for mark in _MARKS)
_BETWEEN = b"\x02"
_TIME_LENGTHS = (20, 27)
_ADDRESS_LENGTH_MAX = 15

Key: TypeAlias = tuple[Hashable, bytes, tuple[int, ...], tuple[int, ...]]
Reads: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
"""Other objects that were looked at, by key or folder, and the revisions that they had; none for what was not there."""


class Question(NamedTuple):
    """What a write is made of: what is the same for its twins, and what is its own."""

    key: Key
    values: tuple[bytes, ...]
    """What can be exchanged, each once."""
    names: tuple[bytes, ...]


class Template(NamedTuple):
    """What came of a write, with holes."""

    texts: tuple[bytes, ...]
    numbers: tuple[int, ...]
    """Which value or name stands between two texts."""
    reads: Reads
    """What else it depended on."""

    def filled(self, question: Question, fresh: Sequence[bytes] = (), names: Sequence[bytes] = ()) -> bytes:
        """What is stored then; with `fresh` values and names that only the server can give."""
        values = (*question.values, *fresh, *question.names, *names)
        pieces = [b""] * (2 * len(self.texts) - 1)
        pieces[::2] = self.texts
        pieces[1::2] = [values[number] for number in self.numbers]
        return b"".join(pieces)


class Twins:
    """Remembers what became of writes."""

    def __init__(self, templates_max: int = TEMPLATES_MAX) -> None:
        assert templates_max > 0, "twins that remember nothing"
        self._templates: dict[Key, Template] = {}
        self._templates_max = templates_max

    def __len__(self) -> int:
        return len(self._templates)

    def find(self, question: Question) -> Template | None:
        return self._templates.get(question.key)

    def learn(
        self, question: Question, stored: bytes, reads: Reads, fresh: Sequence[bytes] = (), names: Sequence[bytes] = ()
    ) -> None:
        """This is what came of it. If it holds values from elsewhere, nothing is learnt."""
        all_names = (*question.names, *names)
        marks = _MARKS[: len(all_names)]
        number_of = {value: number for number, value in enumerate((*question.values, *fresh, *marks))}
        pieces = _EXCHANGEABLE_OR_MARK.split(_with_marks((stored,), all_names)[0])
        if any(value not in number_of for value in pieces[1::2]):
            return
        self._templates.pop(question.key, None)
        if len(self._templates) >= self._templates_max:
            del self._templates[next(iter(self._templates))]
        texts = [text + b'"' for text in pieces[::2]]
        texts[-1] = pieces[-1]
        numbers = tuple(number_of[value] for value in pieces[1::2])
        self._templates[question.key] = Template(tuple(texts), numbers, reads)


def question_of(context: Hashable, texts: Sequence[bytes], names: Sequence[bytes], *values: bytes) -> Question:
    """The question of a write. `values` count as well, although they stand in none of the texts: the call's time."""
    pieces = _EXCHANGEABLE.split(_BETWEEN.join(_with_marks(texts, names)))
    number_of: dict[bytes, int] = {}
    numbers = tuple([number_of.setdefault(value, len(number_of)) for value in (*values, *pieces[1::2])])
    order = tuple([number_of[value] for value in sorted(number_of, key=_sort_and_value)])
    same = blake2b(_BETWEEN.join(pieces[::2]), digest_size=16).digest()
    return Question(((context, len(names)), same, numbers, order), tuple(number_of), tuple(names))


def _with_marks(texts: Sequence[bytes], names: Sequence[bytes]) -> list[bytes]:
    """Each text on its own: where a name stands, all of the text is copied, and most texts hold few names."""
    assert len(names) <= len(_MARKS), f"{len(names)} names; at most {len(_MARKS)} can be exchanged"
    marked = list(texts)
    for mark, name in zip(_MARKS_QUOTED, names, strict=False):
        quoted = b'"%b"' % name
        marked = [text.replace(quoted, mark) for text in marked]
    return marked


def _sort_and_value(value: bytes) -> tuple[int, bytes]:
    """By sort, and then by value. The length tells the sorts apart; addresses are shorter than all others."""
    length = len(value)
    if length in _TIME_LENGTHS:
        return 0, value[:-1]  # without the Z: as text, 10:00:00.5Z would come before 10:00:00Z
    return (1 if length <= _ADDRESS_LENGTH_MAX else length), value
