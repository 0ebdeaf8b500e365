"""Compile a checked tree into one Python function.

Input: a checked tree. Output: a `Program` that evaluates a frame of variables.

 1. A node becomes a closure over the closures of its children. Paths to attributes, comparisons with a constant, and
    calls with one or two arguments have closures of their own, because most selectors consist of them.
 2. Constant lists, maps, conversions and patterns are computed here, and if that fails there is no program, as in
    Kubernetes. Constant quantities and versions are computed here, too, but their errors are raised at run time.
 3. A metered program charges each step to its meter. A program without a meter has no code for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mooring.api.cel import syntax
from mooring.api.cel.conversions import CONVERTING_FUNCTIONS
from mooring.api.cel.costs import LIST_COST, MAP_COST, Meter, argument_cost, result_cost
from mooring.api.cel.environment import Environment
from mooring.api.cel.errors import EvaluationFailure, ProgramFailure, no_such_key
from mooring.api.cel.functions import Binding
from mooring.api.cel.macros import MAP_INSERT
from mooring.api.cel.operators import equal, not_equal
from mooring.api.cel.patterns import PatternError, compile_pattern
from mooring.api.cel.runtime import (
    DEVICE_SLOT,
    FIRST_FREE_SLOT,
    METER_SLOT,
    CompiledNode,
    Frame,
    Loop,
    Run,
    all_of,
    any_of,
    appended,
    at,
    binding,
    bound,
    carried,
    charged,
    comparison,
    conditional,
    constant,
    equality,
    failing,
    has,
    inserted,
    list_with_optionals,
    loop,
    map_of,
    membership,
    meter_of,
    optional_at,
)
from mooring.api.cel.syntax import (
    CallNode,
    Comprehension,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    SyntaxNode,
    constant_path,
)
from mooring.api.cel.types import BOOL, CelType
from mooring.api.cel.values import Optional, Value

DEVICE = "device"
"""The variable of device selectors. Rules of CRDs have others."""

_FOLDED_FUNCTIONS = frozenset({"quantity", "semver", "ip", "cidr", "url"})
_PATTERN_FUNCTIONS = frozenset({"find", "findAll"})


@dataclass(frozen=True, slots=True)
class Program:
    run: Run
    slot_count: int
    is_metered: bool

    def evaluate(self, device: Value) -> Value:
        frame: Frame = [None] * self.slot_count
        frame[DEVICE_SLOT] = device
        if self.is_metered:
            frame[1] = Meter()
        return self.run(frame)

    def evaluate_all(self, values: Sequence[Value], meter: Meter) -> Value:
        """The result for the values of all variables, in the order of their declaration. The meter has the cost."""
        frame: Frame = [None] * self.slot_count
        frame[DEVICE_SLOT] = values[0]
        frame[METER_SLOT] = meter
        frame[FIRST_FREE_SLOT : FIRST_FREE_SLOT + len(values) - 1] = values[1:]
        return self.run(frame)


def compile_tree(
    tree: SyntaxNode, environment: Environment, is_metered: bool, variables: Sequence[str] = (DEVICE,)
) -> Program:
    """Raises `ProgramFailure` if a constant part cannot be computed."""
    compiler = _Compiler(environment, is_metered, variables)
    run = compiler.part(tree).run
    return Program(run, compiler.slot_count, is_metered)


class _Compiler:
    def __init__(self, environment: Environment, is_metered: bool, variables: Sequence[str]) -> None:
        self.environment = environment
        self.is_metered = is_metered
        self.slot_count = FIRST_FREE_SLOT + len(variables) - 1
        slots = (DEVICE_SLOT, *range(FIRST_FREE_SLOT, self.slot_count))
        self.scopes: list[dict[str, CompiledNode]] = [{name: _variable(slot) for name, slot in zip(variables, slots)}]

    def part(self, node: SyntaxNode) -> CompiledNode:
        match node:
            case Literal():
                return constant(node.value)
            case Identifier():
                return self._identifier(node)
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
                raise AssertionError(f"a checked tree has no such node: {node}")

    # --- names and members ---

    def _identifier(self, node: Identifier) -> CompiledNode:
        if node.is_type:
            return constant(self.environment.type_names[node.name])
        found = next(scope[node.name] for scope in reversed(self.scopes) if node.name in scope)
        return CompiledNode(charged(found.run, 1), is_attribute=True) if self.is_metered else found

    def _select(self, node: Select) -> CompiledNode:
        if node.type_name:
            return constant(self.environment.type_names[node.type_name])
        quick = None if node.is_presence_test else self._device_path(node)
        if quick is not None:
            return CompiledNode(quick, is_attribute=True)
        operand, name = self.part(node.operand), node.name
        run = operand.run

        def select(frame: Frame) -> Value:
            value = run(frame)
            if type(value) is dict and name in value:
                return value[name]
            return at(value, name)

        if node.is_presence_test:
            return self._member(operand, lambda frame: has(run(frame), name), cost=0)
        return self._member(operand, select, cost=1)

    def _index(self, node: CallNode, is_optional: bool) -> CompiledNode:
        quick = None if is_optional else self._device_path(node)
        if quick is not None:
            return CompiledNode(quick, is_attribute=True)
        operand, index = (self.part(argument) for argument in node.arguments)
        take, first, second = optional_at if is_optional else at, operand.run, index.run
        return self._member(operand, lambda frame: take(first(frame), second(frame)), cost=1)

    def _member(self, operand: CompiledNode, run: Run, cost: int) -> CompiledNode:
        if self.is_metered:
            run = charged(run, cost if operand.is_attribute else cost + 1)
        return CompiledNode(run, is_attribute=True)

    def _device_path(self, node: SyntaxNode) -> Run | None:
        """A fast closure for `device.driver`, `device.attributes["domain"]` and `device.attributes["domain"].name`."""
        if self.is_metered or DEVICE not in self.scopes[0] or any(DEVICE in scope for scope in self.scopes[1:]):
            return None
        match constant_path(node):
            case ["device", str() as field]:
                return lambda frame: frame[0][field]  # type: ignore[index]
            case ["device", str() as field, str() as domain]:
                return lambda frame: frame[0][field][domain]  # type: ignore[index]
            case ["device", str() as field, str() as domain, str() as name]:

                def member(frame: Frame) -> Value:
                    try:
                        return frame[0][field][domain][name]  # type: ignore[index]
                    except KeyError:
                        raise no_such_key(name) from None

                return member
            case _:
                return None

    # --- calls ---

    def _call(self, node: CallNode) -> CompiledNode:
        match node.function:
            case syntax.INDEX:
                return self._index(node, is_optional=False)
            case syntax.OPTIONAL_INDEX | syntax.OPTIONAL_SELECT:
                return self._index(node, is_optional=True)
            case syntax.AND | syntax.OR:
                combine = all_of if node.function == syntax.AND else any_of
                terms = [self.part(argument).run for argument in node.arguments]
                return CompiledNode(combine(terms, all(argument.type == BOOL for argument in node.arguments)))
            case syntax.CONDITIONAL:
                return self._conditional(node)
            case "or" | "orValue":
                return self._or(node)
            case syntax.NOT_STRICTLY_FALSE:
                raise AssertionError("only conditions of loops use it")
        return self._function_call(node)

    def _conditional(self, node: CallNode) -> CompiledNode:
        condition, if_true, if_false = (self.part(argument) for argument in node.arguments)
        return CompiledNode(conditional(condition.run, if_true.run, if_false.run), is_attribute=True)

    def _or(self, node: CallNode) -> CompiledNode:
        assert node.target is not None, node
        first, second = self.part(node.target).run, self.part(node.arguments[0]).run
        takes_value = node.function == "orValue"

        def run(frame: Frame) -> Value:
            optional = first(frame)
            if not isinstance(optional, Optional):
                return optional
            if not optional.has_value:
                return second(frame)
            return optional.held if takes_value else optional

        return CompiledNode(run)

    def _function_call(self, node: CallNode) -> CompiledNode:
        nodes = [*([node.target] if node.target is not None else []), *node.arguments]
        parts = [self.part(argument) for argument in nodes]
        folded = self._folded(node, parts)
        if folded is not None:
            return folded
        if node.function in (syntax.EQUALS, syntax.NOT_EQUALS):
            run = equality(parts[0], parts[1], is_negated=node.function == syntax.NOT_EQUALS)
        elif node.function in ("_<_", "_<=_", "_>_", "_>=_"):
            run = comparison(node.function, parts[0], parts[1])
        else:
            bound_function = self.environment.functions[node.function]
            run = _applied(bound_function.bound(node.overload_ids, tuple(n.type for n in nodes)), parts)
        return CompiledNode(self._charged_call(node, parts) if self.is_metered else run)

    def _charged_call(self, node: CallNode, parts: list[CompiledNode]) -> Run:
        given = (*([node.target.type] if node.target is not None else []), *(part.type for part in node.arguments))
        function = self._binding_of(node, given)
        before = argument_cost(node.function, node.overload_ids)
        after = result_cost(node.function, node.overload_ids)
        runs = [part.run for part in parts]

        def run(frame: Frame) -> Value:
            arguments = tuple(run(frame) for run in runs)
            meter = meter_of(frame)
            cost = before(arguments)
            meter.require(cost)
            try:
                result = function(*arguments)
            except EvaluationFailure:
                meter.charge(1)
                raise
            meter.charge(cost + after(result))
            return result

        return run

    def _binding_of(self, node: CallNode, argument_types: tuple[CelType, ...]) -> Binding:
        if node.function == syntax.EQUALS:
            return equal
        if node.function == syntax.NOT_EQUALS:
            return not_equal
        return self.environment.functions[node.function].bound(node.overload_ids, argument_types)

    def _folded(self, node: CallNode, parts: list[CompiledNode]) -> CompiledNode | None:
        function = self.environment.functions[node.function]
        if node.function in _PATTERN_FUNCTIONS and parts[1].is_constant:
            self._check_pattern(parts[1].value)
        if node.overload_ids == ("@in(A, list(A)): bool",) and parts[1].is_constant:
            return membership(parts[0], parts[1].value)
        if not all(part.is_constant for part in parts):
            return None
        is_conversion = node.function in CONVERTING_FUNCTIONS and len(parts) == 1
        if not is_conversion and (self.is_metered or node.function not in _FOLDED_FUNCTIONS):
            return None
        try:
            return constant(function.bound(node.overload_ids, ())(*(part.value for part in parts)))
        except EvaluationFailure as failure:
            if is_conversion:
                raise ProgramFailure(str(failure)) from None
            return CompiledNode(failing(str(failure)))

    def _check_pattern(self, pattern: Value) -> None:
        try:
            if isinstance(pattern, str):
                compile_pattern(pattern)
        except PatternError as error:
            raise ProgramFailure(str(error)) from None

    # --- literals ---

    def _list(self, node: ListLiteral) -> CompiledNode:
        parts = [self.part(element) for element in node.elements]
        runs = [part.run for part in parts]
        if all(part.is_constant for part in parts) and not node.optional_positions:
            return constant([part.value for part in parts])
        run = list_with_optionals(runs, node.optional_positions)
        return CompiledNode(charged(run, LIST_COST) if self.is_metered else run)

    def _map(self, node: MapLiteral) -> CompiledNode:
        parts = [(self.part(entry.key), self.part(entry.value)) for entry in node.entries]
        entries = [(key.run, value.run, entry.is_optional) for (key, value), entry in zip(parts, node.entries)]

        def run(frame: Frame) -> Value:
            return map_of(entries, frame)

        if all(key.is_constant and value.is_constant for key, value in parts):
            return _computed_now(run)
        return CompiledNode(charged(run, MAP_COST) if self.is_metered else run)

    # --- loops ---

    def _binding(self, node: Comprehension) -> CompiledNode:
        slot = self._slot()
        value = self.part(node.initial)
        self.scopes.append({node.accumulator: CompiledNode(bound(slot, value.run), is_attribute=True)})
        result = self.part(node.result)
        self.scopes.pop()
        return CompiledNode(binding(slot, result.run))

    def _loop(self, node: Comprehension) -> CompiledNode:
        range_, initial = self.part(node.range), self.part(node.initial)
        result_slot, slot = self._slot(), self._slot()
        second_slot = self._slot() if node.second_variable else None
        self.scopes.append({node.accumulator: CompiledNode(carried(result_slot), is_attribute=True)})
        self.scopes.append({node.variable: _variable(slot)})
        if second_slot is not None:
            self.scopes[-1][node.second_variable] = _variable(second_slot)
        condition, step = self._condition(node.condition), self._step(node.step)
        self.scopes.pop()
        result = self.part(node.result)
        self.scopes.pop()
        start = initial.value
        fresh = start.copy if isinstance(start, (list, dict)) else lambda: start
        return CompiledNode(loop(Loop(range_.run, slot, second_slot, result_slot, fresh, condition, step, result.run)))

    def _condition(self, node: SyntaxNode) -> Run | None:
        match node:
            case Literal(value=True):
                return None
            case CallNode(function=syntax.NOT_STRICTLY_FALSE, arguments=[watched]):
                run = self.part(watched).run
                return charged(run, 1) if self.is_metered else run
            case _:
                raise AssertionError(f"no macro makes such a condition: {node}")

    def _step(self, node: SyntaxNode) -> Run:
        match node:
            case CallNode(function=syntax.CONDITIONAL, arguments=[condition, if_true, if_false]):
                return conditional(self.part(condition).run, self._step(if_true), self.part(if_false).run)
            case CallNode(function=syntax.ADD, arguments=[result, ListLiteral(elements=[element])]):
                inner = self.part(element)
                run = appended(self.part(result).run, inner.run)
                return charged(run, 1 if inner.is_constant else 1 + LIST_COST) if self.is_metered else run
            case CallNode(function=function, arguments=[result, *insertion]) if function == MAP_INSERT:
                run = self._insertion(self.part(result).run, [self.part(part).run for part in insertion])
                return charged(run, 1) if self.is_metered else run
            case _:
                return self.part(node).run

    def _insertion(self, result: Run, parts: list[Run]) -> Run:
        if len(parts) == 2:
            key, value = parts
            return inserted(result, lambda frame: {key(frame): value(frame)})
        return inserted(result, parts[0])

    def _slot(self) -> int:
        self.slot_count += 1
        return self.slot_count - 1


# --- closures ---------------------------------------------------------------------------------------------------


def _variable(slot: int) -> CompiledNode:
    return CompiledNode(lambda frame: frame[slot], is_attribute=True)


def _applied(function: Binding, parts: list[CompiledNode]) -> Run:
    match [part.run for part in parts]:
        case [first]:
            return lambda frame: function(first(frame))
        case [first, second]:
            if parts[1].is_constant:
                value = parts[1].value
                return lambda frame: function(first(frame), value)
            return lambda frame: function(first(frame), second(frame))
        case runs:
            return lambda frame: function(*(run(frame) for run in runs))


def _computed_now(run: Run) -> CompiledNode:
    try:
        return constant(run([]))
    except EvaluationFailure as failure:
        return CompiledNode(failing(str(failure)))
