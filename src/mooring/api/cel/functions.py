"""Declare functions: their signatures, and the Python functions that implement them.

Input: the rows of the libraries, each a signature and a Python function:

    Row("(string).charAt(int): string", char_at)        called as text.charAt(1)
    Row("sets.contains(list(T), list(T)): bool", ...)    called as sets.contains(a, b)

Output: a `Function` for each name, with its overloads in the order of the rows.

 1. The signature is the ID of its overload.
 2. An overload checks the types of its arguments at run time if the checker could not. Of a list or a map it checks the
    first element only, as Kubernetes does.
 3. A function may have one binding for all overloads, which checks its arguments itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mooring.api.cel import types
from mooring.api.cel.errors import EvaluationFailure
from mooring.api.cel.types import CelType, TypeKind
from mooring.api.cel.values import Value, type_name

Binding = Callable[..., Value]


@dataclass(frozen=True, slots=True)
class OverloadRow:
    """One overload of a library function. Without a binding it uses the binding of its function."""

    signature: str
    binding: Binding | None = None
    is_guarded: bool = True


@dataclass(frozen=True, slots=True)
class Overload:
    id: str
    function: str
    is_member: bool
    parameters: tuple[CelType, ...]
    result: CelType
    binding: Binding | None
    is_guarded: bool
    type_parameters: tuple[str, ...]

    def accepts(self, arguments: tuple[Value, ...]) -> bool:
        return len(arguments) == len(self.parameters) and all(map(is_instance, arguments, self.parameters))

    def guarded(self, binding: Binding, are_sure: list[bool]) -> Binding:
        """The binding with a check of the arguments whose types the checker does not know."""
        if not self.is_guarded or all(are_sure):
            return binding
        if are_sure == [False, True] and self.parameters[0].kind in _SIMPLE_KINDS:
            return self._guarded_first(binding, self.parameters[0].name)

        def guarded_binding(*arguments: Value) -> Value:
            if not self.accepts(arguments):
                raise no_such_overload_for(self.function, arguments)
            return binding(*arguments)

        return guarded_binding

    def _guarded_first(self, binding: Binding, name: str) -> Binding:
        # The most frequent case: an attribute of a device and a constant.
        def guarded_binding(first: Value, second: Value) -> Value:
            if type_name(first) != name:
                raise no_such_overload_for(self.function, (first, second))
            return binding(first, second)

        return guarded_binding


@dataclass(slots=True)
class Function:
    name: str
    overloads: list[Overload] = field(default_factory=list)
    binding: Binding | None = None

    def dispatch(self, *arguments: Value) -> Value:
        """Call the first overload that accepts these arguments."""
        for overload in self.overloads:
            if overload.binding is not None and overload.accepts(arguments):
                return overload.binding(*arguments)
        raise no_such_overload_for(self.name, arguments)

    def bound(self, overload_ids: tuple[str, ...], argument_types: tuple[CelType, ...]) -> Binding:
        """The Python function for the overloads and argument types that the checker found."""
        if self.binding is not None:
            return self.binding
        if len(overload_ids) != 1:
            return self.dispatch
        overload = next(overload for overload in self.overloads if overload.id == overload_ids[0])
        if overload.binding is None:
            return self.dispatch
        are_sure = (
            list(map(_is_sure, argument_types, overload.parameters))
            if argument_types
            else [False] * len(overload.parameters)
        )
        return overload.guarded(overload.binding, are_sure)


def functions_of(rows: Iterable[OverloadRow], bindings: dict[str, Binding]) -> dict[str, Function]:
    """The functions of these rows, by name."""
    functions: dict[str, Function] = {}
    for row in rows:
        overload = _overload(row)
        function = functions.setdefault(overload.function, Function(overload.function))
        function.overloads.append(overload)
    for name, binding in bindings.items():
        functions[name].binding = binding
    return functions


def no_such_overload_for(function: str, arguments: tuple[Value, ...]) -> EvaluationFailure:
    return EvaluationFailure(f"no such overload: {function}({', '.join(map(type_name, arguments))})")


def is_instance(value: Value, type_: CelType) -> bool:
    """Whether a value has a type, judging lists and maps by their first element."""
    if type_.is_dynamic or type_.kind is TypeKind.PARAMETER:
        return True
    if type_name(value) != type_.name:
        return False
    if isinstance(value, list) and value and type_.parameters:
        return is_instance(value[0], type_.parameters[0])
    if isinstance(value, dict) and value and type_.parameters:
        key = next(iter(value))
        return is_instance(key, type_.parameters[0]) and is_instance(value[key], type_.parameters[1])
    return True


_SIMPLE_KINDS = {
    TypeKind.BOOL,
    TypeKind.INT,
    TypeKind.UINT,
    TypeKind.DOUBLE,
    TypeKind.STRING,
    TypeKind.BYTES,
    TypeKind.STRUCT,
    TypeKind.DURATION,
    TypeKind.TIMESTAMP,
}


def _is_sure(actual: CelType, expected: CelType) -> bool:
    """Whether the checker has proved the type. `null` is assignable to structs, so only equal types count."""
    return expected.is_dynamic or (actual == expected and expected.kind in _SIMPLE_KINDS)


# --- signatures -------------------------------------------------------------------------------------------------

_SIGNATURE = re.compile(r"(?:\((?P<receiver>.+)\)\.)?(?P<name>[^\s()]+?)\((?P<parameters>.*)\): (?P<result>.+)")
_WORDS = re.compile(r"[A-Za-z@_.]+|[(),]")
_TYPES = {
    "any": types.ANY,
    "bool": types.BOOL,
    "bytes": types.BYTES,
    "double": types.DOUBLE,
    "duration": types.DURATION,
    "dyn": types.DYN,
    "int": types.INT,
    "string": types.STRING,
    "timestamp": types.TIMESTAMP,
    "uint": types.UINT,
    "quantity": types.QUANTITY,
    "semver": types.SEMVER,
    "url": types.URL,
    "ip": types.IP_ADDRESS,
    "cidr": types.CIDR,
    "format": types.NAMED_FORMAT,
}
_CONSTRUCTORS: dict[str, Callable[..., CelType]] = {
    "list": types.list_of,
    "map": types.map_of,
    "optional": types.optional_of,
    "type": types.type_of,
}


def _overload(row: OverloadRow) -> Overload:
    parts = _SIGNATURE.fullmatch(row.signature)
    assert parts is not None, row.signature
    receiver = _types_in(parts["receiver"] or "")
    parameters = (*receiver, *_types_in(parts["parameters"]))
    (result,) = _types_in(parts["result"])
    free = tuple(dict.fromkeys(name for type_ in (*parameters, result) for name in _free(type_)))
    return Overload(row.signature, parts["name"], bool(receiver), parameters, result, row.binding, row.is_guarded, free)


def _types_in(text: str) -> tuple[CelType, ...]:
    words = _WORDS.findall(text)
    found, position = _read_types(words, 0)
    assert position == len(words), text
    return found


def _read_types(words: list[str], position: int) -> tuple[tuple[CelType, ...], int]:
    found: list[CelType] = []
    while position < len(words) and words[position] != ")":
        word = words[position]
        position += 1
        if word == ",":
            continue
        if position < len(words) and words[position] == "(":
            inner, position = _read_types(words, position + 1)
            position += 1
            found.append(_CONSTRUCTORS[word](*inner))
        elif len(word) == 1:
            found.append(types.parameter(word))
        else:
            found.append(_TYPES.get(word) or CelType(TypeKind.STRUCT, word))
    return tuple(found), position


def _free(type_: CelType) -> list[str]:
    if type_.kind is TypeKind.PARAMETER:
        return [type_.name]
    return [name for part in type_.parameters for name in _free(part)]
