"""Templates: manifests with variables, and the values of the variables for the n-th object.

Input: manifests as plain data, with `{name}` in their strings, and rules for the values of these names. Output: plain
data, one object for each index.

 1. A string that is one variable becomes the value itself, so that a number stays a number. Any other string stays a
    string.
 2. Parts without variables are shared by all objects of a template and must not be changed: results are encoded to JSON
    at once.
 3. The same seed gives the same objects. Values are drawn in the order of the indices, from one stream per name.
 4. An unknown variable is an error when the template is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from mooring.kit.entropy import Entropy

Value = str | int
Manifest = dict[str, object]
Values = Mapping[str, Value]

_HOLE = re.compile(r"\{([a-z_]+)\}")


class TemplateError(ValueError):
    """A template, or a rule for a value, is invalid."""


class Variable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a value follows from an object's index. Exactly one of these is given."""

    cycle: int | tuple[Value, ...] | None = None
    """The values of a list in turn, or of 0, 1, …, n - 1."""
    block: int | None = None
    """The first n objects have 0, the next n have 1, and so on."""
    block_per_node: float | None = None
    """As `block`, with n being this share of the number of nodes."""
    draw: tuple[int, int] | None = None
    """A random number from the first to the second, both included."""
    choose: tuple[Value, ...] | None = None
    """A random one of a list."""

    def sequence(self, entropy: Entropy, node_count: int) -> Callable[[int], Value]:
        """The value for each index; called in the order of the indices."""
        given = [name for name in self.__struct_fields__ if getattr(self, name) is not None]
        if len(given) != 1:
            raise TemplateError(f"a variable has exactly one rule, found {', '.join(given) or 'none'}")
        if self.cycle is not None:
            return _cycle(self.cycle)
        if self.draw is not None:
            low, high = self.draw
            return lambda _: low + entropy.integer_below(high - low + 1)
        if self.choose is not None:
            options = self.choose
            return lambda _: entropy.choose(options)
        size = self.block if self.block is not None else int((self.block_per_node or 0.0) * node_count)
        return lambda index: index // max(1, size)


class Template:
    """A manifest with variables, parsed once."""

    __slots__ = ("_filled", "names")

    def __init__(self, manifest: Manifest, names: Sequence[str]) -> None:
        self.names = frozenset(names)
        self._filled = _reader(manifest, self.names)

    def fill(self, values: Values) -> Manifest:
        filled = self._filled(values)
        assert isinstance(filled, dict), "a manifest is a mapping"
        return filled


def merged(base: object, patch: object) -> object:
    """The base with the patch over it: mappings are merged, everything else is replaced; null removes a field."""
    if not isinstance(base, dict) or not isinstance(patch, dict):
        return patch
    result = {key: value for key, value in base.items() if key not in patch or patch[key] is not None}
    for key, value in patch.items():
        if value is not None:
            result[key] = merged(result[key], value) if key in result else value
    return result


_Filler = Callable[[Values], object]


def _reader(plain: object, names: frozenset[str]) -> _Filler:
    """Parse a part. Returns the function that fills it."""
    if isinstance(plain, dict):
        return _mapping_reader(plain, names)
    if isinstance(plain, list):
        return _list_reader(plain, names)
    if isinstance(plain, str):
        return _text_reader(plain, names)
    return _Constant(plain)


class _Constant:
    """A part without variables: always the same object."""

    __slots__ = ("plain",)

    def __init__(self, plain: object) -> None:
        self.plain = plain

    def __call__(self, values: Values) -> object:
        return self.plain


def _mapping_reader(plain: dict[str, object], names: frozenset[str]) -> _Filler:
    parts = {key: _reader(value, names) for key, value in plain.items()}
    changing = [(key, part) for key, part in parts.items() if not isinstance(part, _Constant)]
    if not changing:
        return _Constant(plain)

    def fill(values: Values) -> object:
        filled = plain.copy()
        for key, part in changing:
            filled[key] = part(values)
        return filled

    return fill


def _list_reader(plain: list[object], names: frozenset[str]) -> _Filler:
    parts = [_reader(value, names) for value in plain]
    if all(isinstance(part, _Constant) for part in parts):
        return _Constant(plain)
    return lambda values: [part(values) for part in parts]


def _text_reader(plain: str, names: frozenset[str]) -> _Filler:
    pieces = _HOLE.split(plain)
    for name in pieces[1::2]:
        if name not in names:
            raise TemplateError(f"{plain!r} asks for {{{name}}}, but there is only {', '.join(sorted(names))}")
    if len(pieces) == 1:
        return _Constant(plain)
    if len(pieces) == 3 and not pieces[0] and not pieces[2]:
        only = pieces[1]
        return lambda values: values[only]
    return lambda values: plain.format_map(values)


def _cycle(of: int | tuple[Value, ...]) -> Callable[[int], Value]:
    if isinstance(of, int):
        count = of
        return lambda index: index % count
    options = of
    return lambda index: options[index % len(options)]
