"""Free texts: what the spec of a pod says that no rule reads.

Comes in   a spec as JSON, the way we write it
Goes out   its `Outline`, which is the same for all specs that differ in nothing but free texts; and the texts

Workers that are numbered, jobs of one batch and the versions of an image have specs of one sort, and differ in what
the API server only keeps. What is found out about one of them holds for all.

 1. A text is free if defaulting, validation, the warnings and the ownership of fields come to the same whatever it is:
      the value of a variable (of a header, of an option), unless it is empty or has a `$` in it: `$(NAME)` decides
      about a warning;
      an image with a tag that is not `latest`: other tags decide when it is pulled;
      commands and arguments, a whole list at a time, unless it is empty.
 2. Free are only texts of plain characters, which stand in JSON as they are. Others count to the letter.
 3. A place is known by the bytes around it. An object after `[` or `,` is an item of a list, so that a map with the
    keys `name` and `value`, as of labels, is not taken for a variable; and in a string the quotes have a backslash, so
    that nothing in a string is taken for a place.
 4. Admission reads what it likes: it is asked for each object.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_PLAIN = rb"[ !#-\[\]-~]"
_PLAIN_WITHOUT_DOLLAR = rb"[ !#%-\[\]-~]"
_PLACE = rb'[\[,]\{"name":"[^"\\]*+","(?:value|image)":|[{,]"(?:args|command)":\['
_VALUE = rb'(?<="value":)"%b++"(?=\})' % _PLAIN_WITHOUT_DOLLAR
_IMAGE = rb'(?<="image":)"[A-Za-z0-9][A-Za-z0-9./_:-]*:(?!latest")[A-Za-z0-9_][A-Za-z0-9_.-]*"'
_LIST = rb'(?<=\[)"%b*+"(?:,"%b*+")*+(?=\])' % (_PLAIN, _PLAIN)
_split_at_texts = re.compile(rb"(%b)(%b|%b|%b)" % (_PLACE, _VALUE, _IMAGE, _LIST)).split

_HOLE = b"\x00"
"""Cannot stand in JSON."""
_MARK = "mooring.mark/"
_split_at_marks = re.compile(rb'"%b(\d+):0"' % re.escape(_MARK.encode())).split


class Outline(NamedTuple):
    """A spec with holes, and what stood in them."""

    form: bytes
    texts: list[bytes]

    def marked(self) -> bytes | None:
        """The spec with a mark for each text: as free as the texts. None if a mark could be mistaken."""
        if _MARK.encode() in self.form:
            return None
        pieces = self.form.split(_HOLE)
        marks = [b'"%b%d:0"' % (_MARK.encode(), number) for number in range(len(self.texts))]
        return _filled(pieces, marks)


class Form(NamedTuple):
    """What was made of a marked spec: where each text goes."""

    pieces: list[bytes]
    numbers: list[int]

    def filled(self, texts: list[bytes]) -> bytes:
        if not self.numbers:
            return self.pieces[0]
        return _filled(self.pieces, [texts[number] for number in self.numbers])


def outline_of(spec: bytes) -> Outline:
    """A spec without its free texts."""
    pieces = _split_at_texts(spec)
    texts = pieces[2::3]
    pieces[2::3] = [_HOLE] * len(texts)
    return Outline(b"".join(pieces), texts)


def form_of(marked: bytes) -> Form:
    """Where the texts go in what was made of a marked spec."""
    pieces = _split_at_marks(marked)
    return Form(pieces[::2], [int(number) for number in pieces[1::2]])


def _filled(pieces: list[bytes], texts: list[bytes]) -> bytes:
    both = [b""] * (len(pieces) + len(texts))
    both[::2] = pieces
    both[1::2] = texts
    return b"".join(both)
