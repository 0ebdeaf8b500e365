"""The tree of an expression: what the parser builds, the checker types and the compiler turns into functions.

Comes in   nothing: these are plain values
Goes out   one class for each kind of node

 1. Operators are calls with the names that Kubernetes shows in its error texts (`_==_`, `_[_]`, `!_`, `_?_:_`).
 2. A node knows the offset at which a fault of it is reported: a call's is its operator or its opening bracket.
 3. `type` and what was resolved are filled in by the checker, once; a tree is never shared between compilations.
 4. Quantifiers, `map`, `filter` and `cel.bind` are all one node, `Comprehension`, a loop that carries a result along.
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
class Node:
    offset: int
    type: CelType = field(default=ERROR, init=False)


@dataclass(slots=True)
class Literal(Node):
    value: Value


@dataclass(slots=True)
class Identifier(Node):
    name: str
    is_type: bool = field(default=False, init=False)


@dataclass(slots=True)
class Select(Node):
    operand: Node
    name: str
    is_presence_test: bool = False
    type_name: str = field(default="", init=False)
    """Set when the whole path turned out to be the name of a type, such as `google.protobuf.Duration`."""


@dataclass(slots=True)
class Call(Node):
    function: str
    arguments: list[Node]
    target: Node | None = None
    overload_ids: tuple[str, ...] = field(default=(), init=False)


@dataclass(slots=True)
class ListLiteral(Node):
    elements: list[Node]
    optional_positions: frozenset[int] = frozenset()


@dataclass(slots=True)
class MapEntry:
    offset: int
    key: Node
    value: Node
    is_optional: bool


@dataclass(slots=True)
class MapLiteral(Node):
    entries: list[MapEntry]


@dataclass(slots=True)
class FieldEntry:
    offset: int
    name: str
    value: Node
    is_optional: bool


@dataclass(slots=True)
class StructLiteral(Node):
    type_name: str
    fields: list[FieldEntry]


@dataclass(slots=True)
class Comprehension(Node):
    range: Node
    variable: str
    second_variable: str
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node

    @property
    def is_binding(self) -> bool:
        """A loop over nothing: only its initial value and its result matter."""
        return self.variable == UNUSED_VARIABLE


@dataclass(slots=True)
class Broken(Node):
    """Stands where a fault was already reported."""


def qualified_name(node: Node | None) -> str | None:
    """The path, if it consists of plain names: "a.b.c"."""
    match node:
        case Identifier(name=name):
            return name
        case Select(operand=operand, name=name, is_presence_test=False):
            prefix = qualified_name(operand)
            return None if prefix is None else f"{prefix}.{name}"
        case _:
            return None


def children(node: Node) -> list[Node]:
    """The nodes directly below, in the order in which they are written or evaluated."""
    match node:
        case Select(operand=operand):
            return [operand]
        case Call(target=target, arguments=arguments):
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


def descendants(node: Node) -> list[Node]:
    """The node and everything below it, parents first."""
    found = [node]
    for position_node in found:
        found.extend(children(position_node))
    return found


def constant_path(node: Node) -> list[Value] | None:
    """The names and constant keys from a variable to a member of it."""
    match node:
        case Identifier(name=name, is_type=False):
            return [name]
        case Select(operand=operand, name=name, is_presence_test=False, type_name=""):
            path = constant_path(operand)
            return None if path is None else [*path, name]
        case Call(function="_[_]", arguments=[operand, Literal(value=key)]):
            path = constant_path(operand)
            return None if path is None else [*path, key]
        case _:
            return None
