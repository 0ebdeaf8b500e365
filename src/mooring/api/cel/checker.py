"""Check the types of an expression, and the mistakes that types do not show.

Input: a tree, and the `Environment` of functions and variables. Output: the same tree with the type of each node and
the possible overloads of each call; errors are reported to the source.

 1. A node with an error has the type `error`, which is assignable to every type, so that one mistake is reported once.
 2. A call keeps all overloads that accept its arguments. If there are several, the values decide at run time.
 3. The variables of a macro hide outer variables of the same name. The result of a loop cannot use its iteration
    variables.
 4. `validate` runs on trees without type errors. It reports literal durations, timestamps and patterns that cannot be
    parsed, lists and maps of mixed types, and `format` clauses that do not fit their arguments.
"""

from __future__ import annotations

from mooring.api.cel import types
from mooring.api.cel.environment import Environment
from mooring.api.cel.errors import NOWHERE, CelSource, EvaluationFailure
from mooring.api.cel.functions import Function
from mooring.api.cel.patterns import PatternError, compile_pattern
from mooring.api.cel.strings import FormatClause, FormatError, clauses_of, unsuitable
from mooring.api.cel.syntax import (
    AND,
    OPTIONAL_SELECT,
    OR,
    CallNode,
    Comprehension,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    StructLiteral,
    SyntaxNode,
    children,
    descendants,
    qualified_name,
)
from mooring.api.cel.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    Bindings,
    CelType,
    TypeKind,
    TypeTooLarge,
    assign,
    renamed,
    substituted,
)
from mooring.api.cel.values import Uint

TYPE_STEPS_MIN, TYPE_STEPS_PER_CHARACTER = 20_000, 20
"""Limit of steps through types in one check. An ordinary expression takes about 5 for each character."""


def check(tree: SyntaxNode, source: CelSource, environment: Environment) -> None:
    """Set the types of a tree. They are valid only if the source has no errors afterwards."""
    checker = _Checker(source, environment)
    try:
        checker.check(tree)
        checker.settle(tree)
    except TypeTooLarge:
        source.errors.clear()
        source.report(NOWHERE, "the types of the expression are too large")


_LITERAL_TYPES: dict[type, CelType] = {
    bool: BOOL,
    int: INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
}


class _Checker:
    def __init__(self, source: CelSource, environment: Environment) -> None:
        self.source = source
        self.environment = environment
        self.scopes: list[dict[str, CelType]] = [dict(environment.variables)]
        self.bindings = Bindings(TYPE_STEPS_MIN + TYPE_STEPS_PER_CHARACTER * len(source.text))
        self.free_count = 0

    def check(self, node: SyntaxNode) -> None:
        match node:
            case Literal():
                node.type = _LITERAL_TYPES[type(node.value)]
            case Identifier():
                self._check_identifier(node)
            case Select():
                self._check_select(node)
            case CallNode():
                self._check_call(node)
            case ListLiteral():
                self._check_list(node)
            case MapLiteral():
                self._check_map(node)
            case StructLiteral():
                self._check_struct(node)
            case Comprehension():
                self._check_comprehension(node)
            case _:
                raise AssertionError(f"trees with syntax errors are not checked: {node}")

    def settle(self, tree: SyntaxNode) -> None:
        """Replace type parameters by what they are bound to, or by `dyn`."""
        for node in descendants(tree):
            if node.type.kind is TypeKind.PARAMETER or node.type.parameters:
                node.type = substituted(self.bindings, node.type, free_becomes_dyn=True)

    # --- names ---

    def _check_identifier(self, node: Identifier) -> None:
        name = node.name.removeprefix(".")
        found = self._variable(name)
        described = self.environment.type_names.get(name)
        if found is not None:
            node.type, node.name = found, name
        elif described is not None:
            node.type, node.name, node.is_type = types.type_of(described), name, True
        else:
            self._undeclared(node, node.name)

    def _variable(self, name: str) -> CelType | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def _check_select(self, node: Select) -> None:
        name = qualified_name(node)
        described = self.environment.type_names.get(name.removeprefix(".")) if name is not None else None
        if described is not None and name is not None:
            node.type, node.type_name = types.type_of(described), name.removeprefix(".")
            return
        found = self._field_type(node, node.operand, node.name, is_optional=False)
        node.type = BOOL if node.is_presence_test else substituted(self.bindings, found)

    def _field_type(self, node: SyntaxNode, operand: SyntaxNode, name: str, is_optional: bool) -> CelType:
        self.check(operand)
        target, was_optional = types.without_optional(substituted(self.bindings, operand.type))
        result = self._member_type(node, target, name)
        return types.optional_of(result) if was_optional or is_optional else result

    def _member_type(self, node: SyntaxNode, target: CelType, name: str) -> CelType:
        if target.kind is TypeKind.MAP:
            return target.parameters[1]
        if target.kind is TypeKind.STRUCT:
            fields = self.environment.fields.get(target.name)
            if fields is None:
                self.source.report(node.offset, f"unexpected failed resolution of '{target.name}'")
            elif name in fields:
                return fields[name]
            else:
                self.source.report(node.offset, f"undefined field '{name}'")
            return ERROR
        if target.kind is TypeKind.PARAMETER:
            self._assign(DYN, target)
        elif not target.is_dynamic and target.kind is not TypeKind.ERROR:
            self.source.report(node.offset, f"type '{target.shown}' does not support field selection")
        return DYN

    # --- calls ---

    def _check_call(self, node: CallNode) -> None:
        if node.function == OPTIONAL_SELECT:
            operand, field = node.arguments
            assert isinstance(field, Literal), node
            assert isinstance(field.value, str), node
            field.type = types.STRING
            node.type = substituted(self.bindings, self._field_type(node, operand, field.value, is_optional=True))
            return
        for argument in node.arguments:
            self.check(argument)
        if node.target is None:
            self._check_global_call(node)
            return
        prefix = qualified_name(node.target)
        qualified = f"{prefix}.{node.function}".removeprefix(".") if prefix is not None else ""
        if qualified in self.environment.functions:
            node.target, node.function = None, qualified
            self._resolve(node, self.environment.functions[qualified])
            return
        self.check(node.target)
        self._check_named_call(node, node.function)

    def _check_global_call(self, node: CallNode) -> None:
        name = node.function.removeprefix(".")
        if name in self.environment.functions:
            node.function = name
        self._check_named_call(node, node.function)

    def _check_named_call(self, node: CallNode, name: str) -> None:
        function = self.environment.functions.get(name)
        if function is None:
            self._undeclared(node, name)
        else:
            self._resolve(node, function)

    def _resolve(self, node: CallNode, function: Function) -> None:
        if function.name in (AND, OR):
            self._check_terms(node)
            return
        operands = [*([node.target] if node.target is not None else []), *node.arguments]
        argument_types = tuple(operand.type for operand in operands)
        found: list[str] = []
        result: CelType | None = None
        for overload in function.overloads:
            if overload.is_member is not (node.target is not None):
                continue
            if len(overload.parameters) != len(argument_types):
                self.free_count += len(overload.type_parameters)
                continue
            fresh = {name: self._fresh() for name in overload.type_parameters}
            parameters = tuple(renamed(fresh, type_) for type_ in overload.parameters) if fresh else overload.parameters
            if not assign(self.bindings, argument_types, parameters):
                continue
            found.append(overload.id)
            candidate = substituted(self.bindings, renamed(fresh, overload.result) if fresh else overload.result)
            if result is None:
                result = candidate
            elif not result.is_dynamic and candidate != result:
                result = DYN
        if result is None:
            self._report_no_overload(node, function.name, argument_types)
            return
        node.type, node.overload_ids = result, tuple(found)

    def _check_terms(self, node: CallNode) -> None:
        node.type = BOOL
        for argument in node.arguments:
            if not self._assign(argument.type, BOOL):
                self._mismatch(argument, BOOL, argument.type)
                node.type = ERROR

    def _report_no_overload(self, node: CallNode, name: str, argument_types: tuple[CelType, ...]) -> None:
        shown = [substituted(self.bindings, type_, free_becomes_dyn=True).shown for type_ in argument_types]
        receiver = f"{shown.pop(0)}." if node.target is not None else ""
        signature = f"{receiver}({', '.join(shown)})"
        self.source.report(node.offset, f"found no matching overload for '{name}' applied to '{signature}'")
        node.type = ERROR

    # --- literals ---

    def _check_list(self, node: ListLiteral) -> None:
        joined: CelType | None = None
        for position, element in enumerate(node.elements):
            self.check(element)
            type_ = element.type
            if position in node.optional_positions:
                type_ = self._held_by_optional(element)
            joined = self._joined(element, joined, type_)
        node.type = types.list_of(joined if joined is not None else self._fresh())

    def _check_map(self, node: MapLiteral) -> None:
        key_type: CelType | None = None
        value_type: CelType | None = None
        for entry in node.entries:
            self.check(entry.key)
            key_type = self._joined(entry.key, key_type, entry.key.type)
            self.check(entry.value)
            held = self._held_by_optional(entry.value) if entry.is_optional else entry.value.type
            value_type = self._joined(entry.value, value_type, held)
        node.type = types.map_of(key_type or self._fresh(), value_type or self._fresh())

    def _check_struct(self, node: StructLiteral) -> None:
        # No type of this environment can be constructed by an expression.
        self._undeclared(node, node.type_name)

    def _held_by_optional(self, node: SyntaxNode) -> CelType:
        held, was_optional = types.without_optional(node.type)
        if not was_optional and not held.is_dynamic:
            self._mismatch(node, types.optional_of(held), held)
        return held

    def _joined(self, node: SyntaxNode, before: CelType | None, type_: CelType) -> CelType:
        if before is None:
            return type_
        if self._assign(before, type_):
            return types.most_general(before, type_)
        self._mismatch(node, before, type_)
        return ERROR

    # --- loops ---

    def _check_comprehension(self, node: Comprehension) -> None:
        self.check(node.range)
        self.check(node.initial)
        accumulated = node.initial.type
        self.scopes.append({node.accumulator: accumulated})
        first, second = self._iteration_types(node)
        self.scopes.append({node.variable: first} | ({node.second_variable: second} if node.second_variable else {}))
        self.check(node.condition)
        self._expect(node.condition, BOOL)
        self.check(node.step)
        self._expect(node.step, accumulated)
        self.scopes.pop()
        self.check(node.result)
        self.scopes.pop()
        node.type = substituted(self.bindings, node.result.type)

    def _iteration_types(self, node: Comprehension) -> tuple[CelType, CelType]:
        range_type = substituted(self.bindings, node.range.type)
        match range_type.kind:
            case TypeKind.LIST:
                element = range_type.parameters[0]
                return (INT, element) if node.second_variable else (element, element)
            case TypeKind.MAP:
                return range_type.parameters[0], range_type.parameters[1]
            case TypeKind.DYN | TypeKind.ERROR | TypeKind.PARAMETER:
                self._assign(DYN, range_type)
                return DYN, DYN
            case _:
                self.source.report(
                    node.range.offset,
                    f"expression of type '{range_type.shown}' cannot be range of a comprehension "
                    "(must be list, map, or dynamic)",
                )
                return ERROR, ERROR

    # --- assignments and errors ---

    def _assign(self, actual: CelType, expected: CelType) -> bool:
        return assign(self.bindings, (actual,), (expected,))

    def _expect(self, node: SyntaxNode, expected: CelType) -> None:
        if not self._assign(expected, node.type):
            self._mismatch(node, expected, node.type)

    def _fresh(self) -> CelType:
        self.free_count += 1
        return types.parameter(f"_var{self.free_count - 1}")

    def _mismatch(self, node: SyntaxNode, expected: CelType, found: CelType) -> None:
        self.source.report(node.offset, f"expected type '{expected.shown}' but found '{found.shown}'")

    def _undeclared(self, node: SyntaxNode, name: str) -> None:
        self.source.report(node.offset, f"undeclared reference to '{name}' (in container '')")
        node.type = ERROR


# --- validators -------------------------------------------------------------------------------------------------


def validate(tree: SyntaxNode, source: CelSource, environment: Environment) -> None:
    """Report mistakes in a tree without type errors."""
    nodes = descendants(tree)
    for function in ("duration", "timestamp", "matches"):
        for node in nodes:
            if isinstance(node, CallNode) and node.function == function and node.arguments:
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


def _check_literal(call: CallNode, argument: SyntaxNode, source: CelSource, environment: Environment) -> None:
    if not isinstance(argument, Literal):
        return
    try:
        if call.function != "matches":
            environment.functions[call.function].dispatch(argument.value)
        elif isinstance(argument.value, str):
            compile_pattern(argument.value)
    except (EvaluationFailure, PatternError):
        source.report(argument.offset, f"invalid {call.function} argument")


def _check_elements(node: ListLiteral, source: CelSource) -> None:
    first: CelType | None = None
    for position, element in enumerate(node.elements):
        type_ = element.type.parameters[0] if position in node.optional_positions else element.type
        if first is None:
            first = type_
        elif not types.is_equivalent(first, type_):
            _mismatch(element, first, type_, source)
            return


def _check_entries(node: MapLiteral, source: CelSource) -> None:
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


def _mismatch(node: SyntaxNode, expected: CelType, found: CelType, source: CelSource) -> None:
    source.report(node.offset, f"expected type '{expected.shown}' but found '{found.shown}'")


def _is_format(node: SyntaxNode) -> bool:
    return isinstance(node, CallNode) and node.function == "format"


def _check_format(node: SyntaxNode, source: CelSource) -> None:
    match node:
        case CallNode(function="format", target=Literal(value=str() as form), arguments=[ListLiteral() as values]):
            pass
        case _:
            return
    used = 0
    try:
        for clause in clauses_of(form, len(values.elements)):
            if not clause.letter:
                continue
            found = _first_unsuitable(clause.letter, values.elements[used])
            message = unsuitable(clause, found.type) if found is not None else ""
            if found is not None and message:
                source.report(found.offset, message)
                return
            used += 1
    except FormatError as error:
        source.report(node.offset, str(error))
        return
    if len(values.elements) > used:
        counts = f"(expected {used}, got {len(values.elements)})"
        source.report(node.offset, f"too many arguments supplied to string.format {counts}")


def _first_unsuitable(letter: str, node: SyntaxNode) -> SyntaxNode | None:
    """The value itself, or the first element of a literal list or map that `%s` does not accept."""
    if letter != "s" or not isinstance(node, (ListLiteral, MapLiteral)):
        return node
    for inner in children(node):
        found = _first_unsuitable(letter, inner)
        if found is not None and unsuitable(FormatClause("", letter), found.type):
            return found
    return None
