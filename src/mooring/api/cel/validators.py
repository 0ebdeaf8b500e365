"""Validators: mistakes that types do not show, found before an expression ever runs.

Comes in   a checked tree
Goes out   faults, reported to the source

 1. Literal durations, points in time and patterns can be read.
 2. The elements of a literal list have one type, and so have the keys and the values of a literal map; `any` is one.
 3. The values for a literal format suit their places.
"""

from __future__ import annotations

from mooring.api.cel import types
from mooring.api.cel.checker import Environment
from mooring.api.cel.errors import EvaluationFailure
from mooring.api.cel.patterns import PatternError, compile_pattern
from mooring.api.cel.source import Source
from mooring.api.cel.syntax import Call, ListLiteral, Literal, MapLiteral, Node, children, descendants
from mooring.api.cel.text_format import Clause, FormatFault, clauses_of, unsuitable
from mooring.api.cel.types import CelType


def validate(tree: Node, source: Source, environment: Environment) -> None:
    """Looks for mistakes that the checker lets through."""
    nodes = descendants(tree)
    for function in ("duration", "timestamp", "matches"):
        for node in nodes:
            if isinstance(node, Call) and node.function == function and node.arguments:
                _check_literal(node, node.arguments[0], source, environment)
    in_formats = {id(inner) for node in nodes if _is_format(node) for inner in descendants(node)[1:]}
    for node in nodes:
        if isinstance(node, ListLiteral) and id(node) not in in_formats:
            _check_elements(node, source)
    for node in nodes:
        if isinstance(node, MapLiteral) and id(node) not in in_formats:
            _check_entries(node, source)
    for node in nodes:
        _check_format(node, source)


def _check_literal(call: Call, argument: Node, source: Source, environment: Environment) -> None:
    if not isinstance(argument, Literal):
        return
    try:
        if call.function != "matches":
            environment.functions[call.function].dispatch(argument.value)
        elif isinstance(argument.value, str):
            compile_pattern(argument.value)
    except (EvaluationFailure, PatternError):
        source.report(argument.offset, f"invalid {call.function} argument")


def _check_elements(node: ListLiteral, source: Source) -> None:
    first: CelType | None = None
    for position, element in enumerate(node.elements):
        type_ = element.type.parameters[0] if position in node.optional_positions else element.type
        if first is None:
            first = type_
        elif not types.is_equivalent(first, type_):
            _mismatch(element, first, type_, source)
            return


def _check_entries(node: MapLiteral, source: Source) -> None:
    first: tuple[CelType, CelType] | None = None
    for entry in node.entries:
        value_type = entry.value.type.parameters[0] if entry.is_optional else entry.value.type
        if first is None:
            first = (entry.key.type, value_type)
            continue
        if not types.is_equivalent(first[0], entry.key.type):
            _mismatch(entry.key, first[0], entry.key.type, source)
        if not types.is_equivalent(first[1], value_type):
            _mismatch(entry.value, first[1], value_type, source)


def _mismatch(node: Node, wanted: CelType, found: CelType, source: Source) -> None:
    source.report(node.offset, f"expected type '{wanted.shown}' but found '{found.shown}'")


def _is_format(node: Node) -> bool:
    return isinstance(node, Call) and node.function == "format"


def _check_format(node: Node, source: Source) -> None:
    match node:
        case Call(function="format", target=Literal(value=str() as form), arguments=[ListLiteral() as values]):
            pass
        case _:
            return
    used = 0
    try:
        for clause in clauses_of(form, len(values.elements)):
            if not clause.letter:
                continue
            fault = _first_unsuitable(clause.letter, values.elements[used])
            complaint = unsuitable(clause, fault.type) if fault is not None else ""
            if fault is not None and complaint:
                source.report(fault.offset, complaint)
                return
            used += 1
    except FormatFault as error:
        source.report(node.offset, str(error))
        return
    if len(values.elements) > used:
        counts = f"(expected {used}, got {len(values.elements)})"
        source.report(node.offset, f"too many arguments supplied to string.format {counts}")


def _first_unsuitable(letter: str, node: Node) -> Node | None:
    """The value itself, or the first part of a literal list or map that cannot be printed."""
    if letter != "s" or not isinstance(node, (ListLiteral, MapLiteral)):
        return node
    for inner in children(node):
        found = _first_unsuitable(letter, inner)
        if found is not None and unsuitable(Clause("", letter), found.type):
            return found
    return None
