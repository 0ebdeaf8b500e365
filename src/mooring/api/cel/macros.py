"""Expand macros: calls whose arguments are not values.

Input: each call while it is parsed. Output: a presence test for `has(a.b)`; a `Comprehension` for `all`, `exists`,
`map`, `filter`, `cel.bind` and similar; any other call unchanged.

 1. The nodes that a macro adds have the offset of its opening bracket.
 2. A macro with wrong arguments is reported and becomes a `InvalidNode` node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mooring.api.cel.errors import CelSource
from mooring.api.cel.syntax import (
    ACCUMULATOR,
    ADD,
    AND,
    CONDITIONAL,
    EQUALS,
    NOT,
    NOT_STRICTLY_FALSE,
    OR,
    UNUSED_VARIABLE,
    CallNode,
    Comprehension,
    Identifier,
    InvalidNode,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    StructLiteral,
    SyntaxNode,
)

SORT_BY_INPUT = "@__sortBy_input__"
MAP_INSERT = "cel.@mapInsert"


def expanded(source: CelSource, call: CallNode) -> SyntaxNode:
    """The expansion of a call, or the call."""
    macro = _MACROS.get((call.function, len(call.arguments), call.target is not None))
    if macro is None or (macro is _bind and not source.may_bind):
        return call
    try:
        return macro(call)
    except _MacroError as error:
        source.report(error.offset, error.text)
        return InvalidNode(call.offset)


class _MacroError(Exception):
    def __init__(self, node: SyntaxNode, text: str) -> None:
        super().__init__(text)
        self.offset = node.offset
        self.text = text


def _has(call: CallNode) -> SyntaxNode:
    argument = call.arguments[0]
    if not isinstance(argument, Select) or argument.is_presence_test:
        raise _MacroError(argument, "invalid argument to has() macro")
    return Select(call.offset, argument.operand, argument.name, is_presence_test=True)


# --- loops ------------------------------------------------------------------------------------------------------


def _all(call: CallNode) -> SyntaxNode:
    at = call.offset
    condition = CallNode(at, NOT_STRICTLY_FALSE, [_result(at)])
    return _loop(call, Literal(at, True), condition, CallNode(at, AND, [_result(at), call.arguments[-1]]))


def _exists(call: CallNode) -> SyntaxNode:
    at = call.offset
    condition = CallNode(at, NOT_STRICTLY_FALSE, [CallNode(at, NOT, [_result(at)])])
    return _loop(call, Literal(at, False), condition, CallNode(at, OR, [_result(at), call.arguments[-1]]))


def _exists_one(call: CallNode) -> SyntaxNode:
    at = call.offset
    counted = CallNode(at, ADD, [_result(at), Literal(at, 1)])
    step = CallNode(at, CONDITIONAL, [call.arguments[-1], counted, _result(at)])
    loop = _loop(call, Literal(at, 0), Literal(at, True), step)
    loop.result = CallNode(at, EQUALS, [_result(at), Literal(at, 1)])
    return loop


def _map(call: CallNode) -> SyntaxNode:
    return _collected(call, call.arguments[-1], call.arguments[1] if len(call.arguments) == 3 else None)


def _filter(call: CallNode) -> SyntaxNode:
    return _collected(call, call.arguments[0], call.arguments[1])


def _transform_list(call: CallNode) -> SyntaxNode:
    return _collected(call, call.arguments[-1], call.arguments[2] if len(call.arguments) == 4 else None)


def _transform_map(call: CallNode) -> SyntaxNode:
    key = _simple_name(call.arguments[0], "argument must be a simple name")
    return _inserted(call, [Identifier(call.offset, key), call.arguments[-1]])


def _transform_map_entry(call: CallNode) -> SyntaxNode:
    return _inserted(call, [call.arguments[-1]])


def _collected(call: CallNode, element: SyntaxNode, condition: SyntaxNode | None) -> Comprehension:
    at = call.offset
    step: SyntaxNode = CallNode(at, ADD, [_result(at), ListLiteral(at, [element])])
    if condition is not None:
        step = CallNode(at, CONDITIONAL, [condition, step, _result(at)])
    return _loop(call, ListLiteral(at, []), Literal(at, True), step)


def _inserted(call: CallNode, insertion: list[SyntaxNode]) -> Comprehension:
    at = call.offset
    step: SyntaxNode = CallNode(at, MAP_INSERT, [_result(at), *insertion])
    if len(call.arguments) == 4:
        step = CallNode(at, CONDITIONAL, [call.arguments[2], step, _result(at)])
    return _loop(call, MapLiteral(at, []), Literal(at, True), step)


def _loop(call: CallNode, initial: SyntaxNode, condition: SyntaxNode, step: SyntaxNode) -> Comprehension:
    assert call.target is not None, call
    names = _variables(call)
    second = names[1] if len(names) > 1 else ""
    result = _result(call.offset)
    return Comprehension(call.offset, call.target, names[0], second, ACCUMULATOR, initial, condition, step, result)


def _variables(call: CallNode) -> list[str]:
    is_plain = call.function in ("map", "filter")
    message = "argument is not an identifier" if is_plain else "argument must be a simple name"
    nodes = call.arguments[: _VARIABLE_COUNTS.get((call.function, len(call.arguments)), 1)]
    names = [_simple_name(node, message) for node in nodes]
    if len(names) == 2 and names[0] == names[1]:
        raise _MacroError(nodes[1], f"duplicate variable name: {names[0]}")
    for node, name in zip(nodes, names):
        if name in (ACCUMULATOR, "__result__"):
            raise _MacroError(node, "iteration variable overwrites accumulator variable")
    return names


def _simple_name(node: SyntaxNode, message: str) -> str:
    if not isinstance(node, Identifier):
        raise _MacroError(node, message)
    return node.name


def _result(at: int) -> Identifier:
    return Identifier(at, ACCUMULATOR)


# --- bindings ---------------------------------------------------------------------------------------------------


def _bind(call: CallNode) -> SyntaxNode:
    if not isinstance(call.target, Identifier) or call.target.name != "cel":
        return call
    variable, value, result = call.arguments
    name = _simple_name(variable, "cel.bind() variable names must be simple identifiers")
    return _binding(call.offset, name, value, result)


def _optional_map(call: CallNode) -> SyntaxNode:
    bound = _optional_binding(call, "optMap")
    return _if_it_has_a_value(call, CallNode(call.offset, "optional.of", [bound]))


def _optional_flat_map(call: CallNode) -> SyntaxNode:
    return _if_it_has_a_value(call, _optional_binding(call, "optFlatMap"))


def _optional_binding(call: CallNode, macro: str) -> Comprehension:
    assert call.target is not None, call
    name = _simple_name(call.arguments[0], f"{macro}() variable name must be a simple identifier")
    return _binding(call.offset, name, CallNode(call.offset, "value", [], _copied(call.target)), call.arguments[1])


def _if_it_has_a_value(call: CallNode, mapped: SyntaxNode) -> SyntaxNode:
    at = call.offset
    return CallNode(
        at, CONDITIONAL, [CallNode(at, "hasValue", [], call.target), mapped, CallNode(at, "optional.none", [])]
    )


def _sort_by(call: CallNode) -> SyntaxNode:
    if not isinstance(call.target, (ListLiteral, Select, Identifier, Comprehension, CallNode)):
        assert call.target is not None, call
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise _MacroError(call.target, message)
    at = call.offset
    keys = _map(CallNode(at, "map", call.arguments, Identifier(at, SORT_BY_INPUT)))
    ordered = CallNode(at, "@sortByAssociatedKeys", [keys], Identifier(at, SORT_BY_INPUT))
    return _binding(at, SORT_BY_INPUT, call.target, ordered)


def _binding(at: int, name: str, value: SyntaxNode, result: SyntaxNode) -> Comprehension:
    nothing, step = ListLiteral(at, []), Identifier(at, name)
    return Comprehension(at, nothing, UNUSED_VARIABLE, "", name, value, Literal(at, False), step, result)


def _copied(node: SyntaxNode) -> SyntaxNode:
    """A deep copy of a tree: the checker sets the types of each node."""
    match node:
        case Select(operand=operand):
            return replace(node, operand=_copied(operand))
        case CallNode(target=target, arguments=arguments):
            return replace(node, target=_copied(target) if target else None, arguments=[_copied(a) for a in arguments])
        case ListLiteral(elements=elements):
            return replace(node, elements=[_copied(element) for element in elements])
        case MapLiteral(entries=entries):
            return replace(
                node, entries=[replace(entry, key=_copied(entry.key), value=_copied(entry.value)) for entry in entries]
            )
        case StructLiteral(fields=fields):
            return replace(node, fields=[replace(entry, value=_copied(entry.value)) for entry in fields])
        case Comprehension():
            loop = (node.initial, node.condition, node.step, node.result)
            initial, condition, step, result = (_copied(part) for part in loop)
            return replace(
                node, range=_copied(node.range), initial=initial, condition=condition, step=step, result=result
            )
        case _:
            return replace(node)


_MACROS: dict[tuple[str, int, bool], Callable[[CallNode], SyntaxNode]] = {
    ("has", 1, False): _has,
    ("all", 2, True): _all,
    ("all", 3, True): _all,
    ("exists", 2, True): _exists,
    ("exists", 3, True): _exists,
    ("exists_one", 2, True): _exists_one,
    ("exists_one", 3, True): _exists_one,
    ("existsOne", 2, True): _exists_one,
    ("existsOne", 3, True): _exists_one,
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_map_entry,
    ("transformMapEntry", 4, True): _transform_map_entry,
    ("bind", 3, True): _bind,
    ("optMap", 2, True): _optional_map,
    ("optFlatMap", 2, True): _optional_flat_map,
    ("sortBy", 2, True): _sort_by,
}
_VARIABLE_COUNTS = {
    (function, count): 2
    for function, count, _ in _MACROS
    if (function in ("all", "exists", "exists_one", "existsOne") and count == 3) or function.startswith("transform")
}
