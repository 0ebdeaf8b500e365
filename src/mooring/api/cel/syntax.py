"""The syntax tree of an expression.

1. Operators are calls with the names that Kubernetes uses in error texts (`_==_`, `_[_]`, `!_`, `_?_:_`).
2. The offset of a node is the position of its errors: that of a call is its operator or opening bracket.
3. The checker sets `type` and the resolved names, once. Compilations never share a tree.
4. Quantifiers, `map`, `filter` and `cel.bind` are one kind of node, `Comprehension`: a loop with an accumulator.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mooring.api.cel.types import ERROR, CelType
from mooring.api.cel.values import Value

AND, OR, NOT, CONDITIONAL = "_&&_", "_||_", "!_", "_?_:_"
EQUALS, NOT_EQUALS = "_==_", "_!=_"
INDEX, OPTIONAL_INDEX, OPTIONAL_SELECT = "_[_]", "_[?_]", "_?._"
IN, NEGATE = "@in", "-_"
ADD, NOT_STRICTLY_FALSE = "_+_", "@not_strictly_false"

BINARY_OPERATORS = {
    "<": "_<_",
    "<=": "_<=_",
    ">=": "_>=_",
    ">": "_>_",
    "==": EQUALS,
    "!=": NOT_EQUALS,
    "in": IN,
    "*": "_*_",
    "/": "_/_",
    "%": "_%_",
    "+": ADD,
    "-": "_-_",
}

ACCUMULATOR = "@result"
UNUSED_VARIABLE = "#unused"


@dataclass(slots=True)
class SyntaxNode:
    offset: int
    type: CelType = field(default=ERROR, init=False)


@dataclass(slots=True)
class Literal(SyntaxNode):
    value: Value


@dataclass(slots=True)
class Identifier(SyntaxNode):
    name: str
    is_type: bool = field(default=False, init=False)


@dataclass(slots=True)
class Select(SyntaxNode):
    operand: SyntaxNode
    name: str
    is_presence_test: bool = False
    type_name: str = field(default="", init=False)
    """Set by the checker if the path is the name of a type, such as `google.protobuf.Duration`."""


@dataclass(slots=True)
class CallNode(SyntaxNode):
    function: str
    arguments: list[SyntaxNode]
    target: SyntaxNode | None = None
    overload_ids: tuple[str, ...] = field(default=(), init=False)


@dataclass(slots=True)
class ListLiteral(SyntaxNode):
    elements: list[SyntaxNode]
    optional_positions: frozenset[int] = frozenset()


@dataclass(slots=True)
class MapEntry:
    offset: int
    key: SyntaxNode
    value: SyntaxNode
    is_optional: bool


@dataclass(slots=True)
class MapLiteral(SyntaxNode):
    entries: list[MapEntry]


@dataclass(slots=True)
class FieldEntry:
    offset: int
    name: str
    value: SyntaxNode
    is_optional: bool


@dataclass(slots=True)
class StructLiteral(SyntaxNode):
    type_name: str
    fields: list[FieldEntry]


@dataclass(slots=True)
class Comprehension(SyntaxNode):
    range: SyntaxNode
    variable: str
    second_variable: str
    accumulator: str
    initial: SyntaxNode
    condition: SyntaxNode
    step: SyntaxNode
    result: SyntaxNode

    @property
    def is_binding(self) -> bool:
        """Whether this is `cel.bind`: no iteration, only the initial value and the result."""
        return self.variable == UNUSED_VARIABLE


@dataclass(slots=True)
class InvalidNode(SyntaxNode):
    """A part with an error that was reported."""


def qualified_name(node: SyntaxNode | None) -> str | None:
    """The path "a.b.c", if the node is one."""
    match node:
        case Identifier(name=name):
            return name
        case Select(operand=operand, name=name, is_presence_test=False):
            prefix = qualified_name(operand)
            return None if prefix is None else f"{prefix}.{name}"
        case _:
            return None


def children(node: SyntaxNode) -> list[SyntaxNode]:
    """The nodes directly below, in the order of the text or of evaluation."""
    match node:
        case Select(operand=operand):
            return [operand]
        case CallNode(target=target, arguments=arguments):
            return [*([target] if target is not None else []), *arguments]
        case ListLiteral(elements=elements):
            return list(elements)
        case MapLiteral(entries=entries):
            return [part for entry in entries for part in (entry.key, entry.value)]
        case StructLiteral(fields=fields):
            return [entry.value for entry in fields]
        case Comprehension():
            return [node.range, node.initial, node.condition, node.step, node.result]
        case _:
            return []


def descendants(node: SyntaxNode) -> list[SyntaxNode]:
    """The node and all nodes below it, parents first."""
    found = [node]
    for position_node in found:
        found.extend(children(position_node))
    return found


def constant_path(node: SyntaxNode) -> list[Value] | None:
    """The variable, names and constant keys of a member, if all are constant."""
    match node:
        case Identifier(name=name, is_type=False):
            return [name]
        case Select(operand=operand, name=name, is_presence_test=False, type_name=""):
            path = constant_path(operand)
            return None if path is None else [*path, name]
        case CallNode(function="_[_]", arguments=[operand, Literal(value=key)]):
            path = constant_path(operand)
            return None if path is None else [*path, key]
        case _:
            return None
