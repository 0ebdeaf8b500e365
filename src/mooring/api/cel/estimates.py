"""Estimate the maximum cost of an expression.

Input: a checked tree; for variables other than a device, the sizes of their parts. Output: the maximum cost in the unit
of `costs`. The API server rejects an expression whose maximum is above `COST_MAX`.

    device.attributes["a"].b.matches("x")        cheap: an attribute has at most 64 characters
    device.attributes.a.b.matches("x")           unknown: Kubernetes does not know the size at this path

 1. A size comes from a literal, from the path of a value in the device, or from its type. Every function of a value of
    unknown size has the maximum cost.
 2. A loop costs its largest range times its most expensive step. Of two alternatives the more expensive one counts.
 3. The figures are those of Kubernetes, including its oddities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mooring.api.cel.call_estimates import (
    LIST_COST,
    NEVER,
    NOTHING,
    ONE,
    REGEX_FACTOR,
    TEXT_FACTOR,
    UNKNOWN,
    CostRange,
    Estimate,
    Operand,
    call_estimate,
    exactly,
)
from mooring.api.cel.syntax import (
    ADD,
    AND,
    CONDITIONAL,
    EQUALS,
    NOT_EQUALS,
    OR,
    CallNode,
    Comprehension,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    SyntaxNode,
)
from mooring.api.cel.types import CelType, TypeKind, without_optional

MAP_COST = 30

Path = tuple[str, ...]
SizeAt = Callable[[Path], CostRange | None]


def worst_cost(tree: SyntaxNode, size_at: SizeAt | None = None) -> int:
    """The maximum cost of the expression. `size_at` returns sizes of values, if they are not parts of a device."""
    return _Estimator(size_at or _device_size).cost(tree).high


# --- sizes in devices -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Shape:
    """A part of a device: its maximum size, and its parts."""

    size_max: int
    keys: _Shape | None = None
    values: _Shape | None = None
    fields: dict[str, _Shape] = field(default_factory=dict)


_PROPERTIES_MAX = 32
_DOMAIN, _IDENTIFIER, _ATTRIBUTE, _AMOUNT = _Shape(63), _Shape(32), _Shape(64), _Shape(0)
_DEVICE = _Shape(
    0,
    fields={
        "driver": _Shape(63),
        "allowMultipleAllocations": _Shape(1),
        "attributes": _Shape(_PROPERTIES_MAX, _DOMAIN, _Shape(_PROPERTIES_MAX, _IDENTIFIER, _ATTRIBUTE)),
        "capacity": _Shape(_PROPERTIES_MAX, _DOMAIN, _Shape(_PROPERTIES_MAX, _IDENTIFIER, _AMOUNT)),
    },
)


def _device_size(path: Path) -> CostRange | None:
    if not path or path[0] != "device":
        return None
    shape = _DEVICE
    for name in path[1:]:
        below = _below(shape, name)
        if below is None:
            return None
        shape = below
    return CostRange(0, shape.size_max)


def _below(shape: _Shape, name: str) -> _Shape | None:
    match name:
        case "@items" | "@values":
            return shape.values
        case "@keys":
            return shape.keys
        case _:
            # Kubernetes knows the size at any name below a domain of attributes, but not of other maps.
            return shape.fields.get(name) or (_ATTRIBUTE if shape.values is _ATTRIBUTE else None)


# --- the estimator ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _EntrySizes:
    """The sizes of the keys and values of a list or map."""

    is_list: bool
    keys: CostRange
    values: CostRange

    def joined(self, other: _EntrySizes | None) -> _EntrySizes | None:
        if other is None:
            return None
        return _EntrySizes(self.is_list, self.keys.joined(other.keys), self.values.joined(other.values))


@dataclass(frozen=True, slots=True)
class _Variable:
    path: Path
    size: CostRange | None
    entries: _EntrySizes | None = None


class _Estimator:
    def __init__(self, size_at: SizeAt) -> None:
        self.size_at = size_at
        self.variables: dict[str, list[_Variable]] = {}
        self.paths: dict[int, Path] = {}
        self.sizes: dict[int, CostRange] = {}
        self.entries: dict[int, _EntrySizes] = {}

    def cost(self, node: SyntaxNode) -> CostRange:
        match node:
            case Identifier():
                variable = self._variable(node)
                self.paths[id(node)] = variable.path if variable is not None else (node.name,)
                return ONE
            case Select():
                return self._select(node)
            case CallNode():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case Comprehension():
                return self._binding(node) if node.is_binding else self._loop(node)
            case _:
                return NOTHING

    # --- paths, sizes and entries ---

    def _variable(self, node: SyntaxNode) -> _Variable | None:
        held = self.variables.get(node.name) if isinstance(node, Identifier) else None
        return held[-1] if held else None

    def _path(self, node: SyntaxNode) -> Path:
        variable = self._variable(node)
        return variable.path if variable is not None else self.paths.get(id(node), ())

    def _size(self, node: SyntaxNode) -> CostRange | None:
        found = self.sizes.get(id(node)) or _written_size(node)
        if found is not None:
            return found
        found = self.size_at(self._path(node))
        if found is not None:
            self.sizes[id(node)] = found
            return found
        if _is_scalar(node.type):
            return ONE
        variable = self._variable(node)
        return variable.size if variable is not None else None

    def _size_or_unknown(self, node: SyntaxNode) -> CostRange:
        return self._size(node) or UNKNOWN

    def _entries_of(self, node: SyntaxNode) -> _EntrySizes | None:
        found = self.entries.get(id(node))
        variable = self._variable(node)
        return found or (variable.entries if variable is not None else None)

    def _note(self, node: SyntaxNode, size: CostRange | None, entries: _EntrySizes | None = None) -> None:
        if size is not None:
            self.sizes[id(node)] = size
        if entries is not None:
            self.entries[id(node)] = entries

    # --- nodes ---

    def _select(self, node: Select) -> CostRange:
        if node.type_name:
            return ONE
        total = self.cost(node.operand)
        if node.is_presence_test:
            return total
        self.paths[id(node)] = (*self._path(node.operand), node.name)
        return (
            total.plus(ONE) if node.operand.type.kind in (TypeKind.MAP, TypeKind.STRUCT, TypeKind.PARAMETER) else total
        )

    def _list(self, node: ListLiteral) -> CostRange:
        total, values = exactly(LIST_COST), NEVER if node.elements else NOTHING
        for element in node.elements:
            total = total.plus(self.cost(element))
            values = values.joined(self._size_or_unknown(element))
        self._note(node, None, _EntrySizes(True, ONE, values))
        return total

    def _map(self, node: MapLiteral) -> CostRange:
        total, keys, values = exactly(MAP_COST), *([NEVER] * 2 if node.entries else [NOTHING] * 2)
        for entry in node.entries:
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            keys = keys.joined(self._size_or_unknown(entry.key))
            values = values.joined(self._size_or_unknown(entry.value))
        self._note(node, None, _EntrySizes(False, keys, values))
        return total

    def _binding(self, node: Comprehension) -> CostRange:
        total = self.cost(node.range).plus(self.cost(node.initial))
        self._push(node.accumulator, self._bound(node.initial))
        total = total.plus(self.cost(node.result))
        self._note(node, self._size(node.result), self._entries_of(node.result))
        self._pop(node.accumulator)
        return total

    def _loop(self, node: Comprehension) -> CostRange:
        total = self.cost(node.range).plus(self.cost(node.initial))
        self._push(node.accumulator, self._bound(node.initial))
        variables = self._iterated(node)
        for name, variable in variables:
            self._push(name, variable)
        condition, step = self.cost(node.condition), self.cost(node.step)
        for name, _ in variables:
            self._pop(name)
        total = total.plus(self.cost(node.result))
        self._pop(node.accumulator)
        count = self._size_or_unknown(node.range)
        total = total.plus(count.times(step.plus(condition)))
        if isinstance(node.initial, Literal):
            self._note(node, self._size(node.initial))
        elif isinstance(node.initial, ListLiteral | MapLiteral):
            self._note(node, count, self._entries_of(node.step))
        return total

    def _iterated(self, node: Comprehension) -> list[tuple[str, _Variable]]:
        entries, path = self._entries_of(node.range), self._path(node.range)
        is_list = entries.is_list if entries is not None else node.range.type.kind is TypeKind.LIST
        keys = _Variable((*path, "@indices" if is_list else "@keys"), entries.keys if entries is not None else None)
        values = _Variable((*path, "@items" if is_list else "@values"), entries.values if entries is not None else None)
        if node.second_variable:
            return [(node.variable, keys), (node.second_variable, values)]
        return [(node.variable, values if is_list else keys)]

    def _bound(self, node: SyntaxNode) -> _Variable:
        return _Variable(self._path(node), self._size(node), self._entries_of(node))

    def _push(self, name: str, variable: _Variable) -> None:
        self.variables.setdefault(name, []).append(variable)

    def _pop(self, name: str) -> None:
        self.variables[name].pop()

    # --- calls ---

    def _call(self, node: CallNode) -> CostRange:
        costs = [self.cost(argument) for argument in node.arguments]
        arguments = [self._operand(argument) for argument in node.arguments]
        total, target = NOTHING, None
        for cost in costs:
            total = total.plus(cost)
        if node.function in (AND, OR):
            return total
        if node.function == "dyn":
            self._note(node, self._size(node.arguments[0]), self._entries_of(node.arguments[0]))
            return total.plus(ONE)
        if node.function == CONDITIONAL:
            return self._conditional(node, costs)
        if node.target is not None:
            total = total.plus(self.cost(node.target))
            target = self._operand(node.target)
        dearest, size = NEVER, None
        for overload in node.overload_ids or ("",):
            found = call_estimate(node.function, overload, target, arguments) or self._core_estimate(
                node, overload, target, arguments
            )
            dearest = dearest.joined(found.cost)
            if found.result_size is not None:
                size = found.result_size if size is None else size.joined(found.result_size)
            size = self._indexed_size(node, overload, size)
            size = size if size is not None else self._size(node)
        self._note(node, size)
        return total.plus(dearest)

    def _operand(self, node: SyntaxNode) -> Operand:
        return Operand(node, self._size(node), self.size_at((*self._path(node), "@items")))

    def _conditional(self, node: CallNode, costs: list[CostRange]) -> CostRange:
        _, first, second = node.arguments
        entries = self._entries_of(first)
        size = self._size_or_unknown(first).joined(self._size_or_unknown(second))
        self._note(node, size, entries.joined(self._entries_of(second)) if entries is not None else None)
        return costs[0].plus(costs[1].joined(costs[2]))

    def _indexed_size(self, node: CallNode, overload: str, size: CostRange | None) -> CostRange | None:
        step = {"_[_](list(A), int): A": "@items", "_[_](map(A, B), A): B": "@values"}.get(overload)
        if step is None:
            return size
        holder = node.arguments[0]
        self.paths[id(node)] = (*self._path(holder), step)
        entries = self._entries_of(holder)
        return entries.values if entries is not None else None

    def _core_estimate(
        self, node: CallNode, overload: str, target: Operand | None, arguments: list[Operand]
    ) -> Estimate:
        """The cost of a function of the language itself, without its arguments."""
        match overload:
            case "(string).format(list(dyn)): string":
                assert target is not None
                return Estimate(target.size.scaled(TEXT_FACTOR))
            case "bytes(string): bytes":
                size = arguments[0].size
                return Estimate(size.scaled(TEXT_FACTOR), CostRange(size.low, size.high * 4))
            case "string(bytes): string":
                size = arguments[0].size
                return Estimate(size.scaled(TEXT_FACTOR), CostRange(size.low // 4, size.high))
            case "strings.quote(string): string":
                size = arguments[0].size
                return Estimate(size.scaled(TEXT_FACTOR), CostRange(size.low + 2, size.high * 2 + 2))
            case "(string).startsWith(string): bool" | "(string).endsWith(string): bool":
                return Estimate(arguments[0].size.scaled(TEXT_FACTOR))
            case "@in(A, list(A)): bool":
                return Estimate(arguments[1].size)
            case "(string).matches(string): bool":
                assert target is not None
                text_cost = target.size.plus(ONE).scaled(TEXT_FACTOR)
                return Estimate(text_cost.times(arguments[0].size.scaled(REGEX_FACTOR)))
            case "(string).contains(string): bool":
                assert target is not None
                return Estimate(target.size.scaled(TEXT_FACTOR).times(arguments[0].size.scaled(TEXT_FACTOR)))
        if overload in _ADDITIONS:
            return self._addition(node, overload, arguments)
        if node.function in (EQUALS, NOT_EQUALS) or overload in _TEXT_COMPARISONS:
            high = min(arguments[0].size.high, arguments[1].size.high)
            return Estimate(CostRange(min(high, 1), high).scaled(TEXT_FACTOR))
        return Estimate(ONE)

    def _addition(self, node: CallNode, overload: str, arguments: list[Operand]) -> Estimate:
        size = arguments[0].size.plus(arguments[1].size)
        entries = self._entries_of(arguments[0].node)
        self._note(node, None, entries.joined(self._entries_of(arguments[1].node)) if entries is not None else None)
        return Estimate(ONE if "list" in overload else size.scaled(TEXT_FACTOR), size)


_ADDITIONS = frozenset(f"{ADD}({name}, {name}): {name}" for name in ("string", "bytes", "list(A)"))
_TEXT_COMPARISONS = frozenset(
    f"{operator}({name}, {name}): bool" for operator in ("_<_", "_<=_", "_>_", "_>=_") for name in ("string", "bytes")
)
_SCALARS = frozenset(
    {TypeKind.BOOL, TypeKind.DOUBLE, TypeKind.DURATION, TypeKind.INT, TypeKind.TIMESTAMP, TypeKind.UINT}
)


def _written_size(node: SyntaxNode) -> CostRange | None:
    match node:
        case Literal(value=str() | bytes() as value):
            return exactly(len(value))
        case Literal():
            return ONE
        case ListLiteral(elements=elements):
            return exactly(len(elements))
        case MapLiteral(entries=entries):
            return exactly(len(entries))
        case _:
            return None


def _is_scalar(kind: CelType) -> bool:
    held, was_optional = without_optional(kind)
    return _is_scalar(held) if was_optional else kind.kind in _SCALARS
