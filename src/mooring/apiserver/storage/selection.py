"""Label and field selectors on stored objects.

Input: a `Selection`, as Kubernetes writes it (`app=web`, `spec.nodeName=,status.phase!=Failed`).
Output: a matcher of stored bytes; None if everything matches.

 1. A matcher decodes only the fields that it looks at: for each selection a decoder is made that knows no others.
 2. A field that is absent is the empty text, a flag `false` and a count `0`, as in kube-apiserver.
 3. Any path can be selected by. Which ones kube-apiserver allows for a kind is for an API server to check.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import TypeAlias, cast

import msgspec

from mooring.api.errors import LabelSelectorError
from mooring.api.labels import LabelMatcher, parse_selector
from mooring.apiserver.storage.stored_form import PlainObject, decoded
from mooring.client.errors import BadRequestError
from mooring.client.interface import Selection

SELECTIONS_KEPT_MAX = 1_024  # compiled ones; a selection beyond that is compiled again when it is next used

_LABELS = ("metadata", "labels")
_FLAGS = frozenset({"spec.unschedulable", "spec.hostNetwork"})
_COUNTS = frozenset({"status.succeeded", "status.replicas"})
# Terms end at a comma and values may hold an escaped one.
_TERM = re.compile(r"(?:[^,\\]|\\.)+")
_OPERATOR = re.compile(r"!=|==|=")
_ESCAPED = re.compile(r"\\(.)")

Tree: TypeAlias = "dict[str, Tree | None]"


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One requirement of a field selector."""

    path: str
    """Of several paths, separated by `|`, the first one with a value counts."""
    value: str
    is_equal: bool

    @property
    def paths(self) -> list[tuple[str, ...]]:
        return [tuple(path.split(".")) for path in self.path.split("|")]

    def accepts(self, found: object) -> bool:
        text = found if isinstance(found, str) else _text(found, self.path)
        return (text == self.value) is self.is_equal


def check_selectors(labels: str, fields: str) -> None:
    """Raises `BadRequestError` if one of two selectors cannot be read.

    Builds no matcher: a stranger names any path, and a matcher has a class for every step of it.
    """
    _label_matcher(labels)
    parse_field_selector(fields)


@lru_cache(maxsize=SELECTIONS_KEPT_MAX)
def matcher_of(labels: str, fields: str) -> ObjectMatcher | None:
    """The matcher of two selectors. Raises `BadRequestError` if one of them cannot be read."""
    label_matcher = _label_matcher(labels)
    terms = parse_field_selector(fields)
    if label_matcher.matches_everything and not terms:
        return None
    return ObjectMatcher(label_matcher, terms)


def _label_matcher(labels: str) -> LabelMatcher:
    try:
        return parse_selector(labels)
    except LabelSelectorError as error:
        raise BadRequestError(str(error)) from None


def matcher_of_selection(selection: Selection) -> ObjectMatcher | None:
    if not selection.labels and not selection.fields:
        return None
    return matcher_of(selection.labels, selection.fields)


def parse_field_selector(text: str) -> tuple[FieldTerm, ...]:
    """The requirements of a field selector, all of which must hold. Raises `BadRequestError`."""
    terms = []
    for part in _TERM.findall(text):
        operator = _OPERATOR.search(part)
        if operator is None:
            raise BadRequestError(f"invalid selector: '{text}'; can't understand '{part}'")
        value = part[operator.end() :]
        _check_escapes(value)
        terms.append(FieldTerm(part[: operator.start()], _ESCAPED.sub(r"\1", value), operator[0] != "!="))
    return tuple(terms)


class ObjectMatcher:
    """Whether a stored object is selected."""

    __slots__ = ("_decode", "_labels", "_labels_in", "_terms")

    def __init__(self, labels: LabelMatcher, terms: tuple[FieldTerm, ...]) -> None:
        self._labels = None if labels.matches_everything else labels
        paths = [path for term in terms for path in term.paths]
        if self._labels is not None:
            paths.append(_LABELS)
        view, getters = _view_of(paths)
        self._decode = msgspec.json.Decoder(view).decode
        self._labels_in = getters[_LABELS] if self._labels is not None else None
        self._terms = [(term, _first_of([getters[path] for path in term.paths])) for term in terms]

    def matches(self, value: bytes) -> bool:
        try:
            seen = self._decode(value)
            if self._labels_in is not None:
                labels = cast("dict[str, str] | None", self._labels_in(seen))
                if not cast(LabelMatcher, self._labels).matches(labels or {}):
                    return False
            return all(term.accepts(found_in(seen)) for term, found_in in self._terms)
        except (msgspec.ValidationError, AttributeError):  # a null or a scalar where the path goes on
            return self._matches_slowly(decoded(value))

    def _matches_slowly(self, plain: PlainObject) -> bool:
        labels = _walk(plain, _LABELS)
        if self._labels is not None and not self._labels.matches(labels if isinstance(labels, dict) else {}):
            return False
        walks = ((term, [_walk(plain, path) for path in term.paths]) for term, _ in self._terms)
        return all(term.accepts(next(filter(None, found), found[-1])) for term, found in walks)


# --- partial decoding --------------------------------------------------------------------------------------------


def _view_of(
    paths: list[tuple[str, ...]],
) -> tuple[type[msgspec.Struct], dict[tuple[str, ...], Callable[[object], object]]]:
    """A class that decodes only these paths, and for each path a function that returns its value."""
    tree: Tree = {}
    for path in paths:
        branch = tree
        for step in path[:-1]:
            deeper = branch.get(step)
            if deeper is None:
                deeper = branch[step] = {}
            branch = deeper
        branch.setdefault(path[-1], None)
    names: dict[str, str] = {}
    view = _struct_of(tree, names)
    return view, {path: attrgetter(".".join(names[step] for step in path)) for path in paths}


def _struct_of(tree: Tree, names: dict[str, str]) -> type[msgspec.Struct]:
    fields: list[tuple[str, object, object]] = []
    for step, deeper in tree.items():
        # A step may be no Python name (`f:spec`), so each gets one.
        name = names.setdefault(step, f"step_{len(names)}")
        if deeper is None:
            fields.append((name, object, None))
        else:
            inner = _struct_of(deeper, names)
            fields.append((name, inner, inner()))
    renames = {names[step]: step for step in tree}
    return msgspec.defstruct("Selected", fields, frozen=True, gc=False, rename=renames)


def _first_of(getters: list[Callable[[object], object]]) -> Callable[[object], object]:
    """The first value that is not empty."""
    if len(getters) == 1:
        return getters[0]
    return lambda seen: next(filter(None, (getter(seen) for getter in getters)), None)


def _walk(plain: object, path: tuple[str, ...]) -> object:
    for step in path:
        plain = plain.get(step) if isinstance(plain, dict) else None
    return plain


def _text(found: object, path: str) -> str:
    match found:
        case None:
            return "false" if path in _FLAGS else "0" if path in _COUNTS else ""
        case bool():
            return "true" if found else "false"
        case int() | float():
            return str(found)
        case _:
            return ""


def _check_escapes(value: str) -> None:
    for escaped in _ESCAPED.finditer(value):
        if escaped[1] not in "\\,=":
            raise BadRequestError(f"invalid field selector: invalid escape sequence: {escaped[0]}")
    if "=" in _ESCAPED.sub("", value):
        raise BadRequestError(f"invalid field selector: unescaped character in value: {ord('=')}")
