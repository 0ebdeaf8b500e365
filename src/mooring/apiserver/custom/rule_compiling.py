"""Compile the CEL validation rules of a CRD.

Input: the rules of one node of a schema, and the type of its values. Output: a `CompiledRule` for each, in the same
order.

 1. A rule or `messageExpression` that does not compile has an error text and no program.
 2. Every program is metered, because the size of its values is not bounded.
"""

from __future__ import annotations

from dataclasses import dataclass

from mooring.api.cel.checker import check, validate
from mooring.api.cel.compiler import Program, compile_tree
from mooring.api.cel.environment import Environment
from mooring.api.cel.errors import NOWHERE, ProgramFailure, Source
from mooring.api.cel.estimates import worst_cost
from mooring.api.cel.parser import NESTED_TOO_DEEPLY, parse
from mooring.api.cel.syntax import Identifier, Node, descendants
from mooring.api.cel.types import BOOL, STRING, CelType
from mooring.api.document import Document
from mooring.apiserver.custom.field_paths import FieldPathError, read_field_path
from mooring.apiserver.custom.rule_types import OLD_SELF, REQUEST_BYTES_MAX, SELF, Declared, environment_of, size_at
from mooring.apiserver.custom.schema import Schema


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule with its programs."""

    rule: Document
    program: Program | None = None
    error: str = ""
    uses_old: bool = False
    cost_max: int = 0
    message: Program | None = None
    message_error: str = ""
    message_cost_max: int = 0
    field_path: str = ""
    """The path of the error, relative to the value."""

    @property
    def is_old_optional(self) -> bool:
        return bool(self.rule.get("optionalOldSelf"))


def compiled_rules(schema: Schema, declared: Declared) -> list[CompiledRule]:
    """The compiled rules of a node."""
    if not schema.rules:
        return []
    plain = environment_of(declared, is_old_optional=False)
    optional = environment_of(declared, is_old_optional=True)
    return [
        _compiled(schema, rule, optional if rule.get("optionalOldSelf") else plain, declared) for rule in schema.rules
    ]


def cardinality_max(declared: Declared) -> int:
    """The maximum number of values of a type in one request."""
    return REQUEST_BYTES_MAX // (declared.bytes_min + 1)


class _CompilationError(Exception):
    """The expression does not compile."""


@dataclass(frozen=True, slots=True)
class _Expression:
    tree: Node
    program: Program
    cost_max: int


def _compiled(schema: Schema, rule: Document, environment: Environment, declared: Declared) -> CompiledRule:
    text = rule.get("rule", "")
    if not text.strip():
        return CompiledRule(rule)
    try:
        found = _expression(text, environment, declared, BOOL, "cel expression must evaluate to a bool", "")
    except _CompilationError as error:
        return CompiledRule(rule, error=str(error))
    uses_old = any(isinstance(node, Identifier) and node.name == OLD_SELF for node in descendants(found.tree))
    message: _Expression | None = None
    message_error = ""
    if rule.get("messageExpression"):
        wanted = "messageExpression must evaluate to a string"
        try:
            message = _expression(
                rule["messageExpression"], environment, declared, STRING, wanted, "messageExpression "
            )
        except _CompilationError as error:
            message_error = str(error)
    return CompiledRule(
        rule,
        found.program,
        uses_old=uses_old,
        cost_max=found.cost_max,
        message=message.program if message is not None else None,
        message_error=message_error,
        message_cost_max=message.cost_max if message is not None else 0,
        field_path=_field_path(rule.get("fieldPath", ""), schema),
    )


def _expression(
    text: str, environment: Environment, declared: Declared, wanted: CelType, otherwise: str, called: str
) -> _Expression:
    source = Source(text, may_bind=False)
    try:
        tree = parse(source)
        if not source.errors:
            check(tree, source, environment)
        if not source.errors:
            validate(tree, source, environment)
        if source.errors:
            raise _CompilationError(f"{called}compilation failed: {source.error_report()}")
        if tree.type != wanted:
            raise _CompilationError(otherwise)
        program = compile_tree(tree, environment, True, (SELF, OLD_SELF))
    except RecursionError:
        source.errors.clear()
        source.report(NOWHERE, NESTED_TOO_DEEPLY)
        raise _CompilationError(f"{called}compilation failed: {source.error_report()}") from None
    except ProgramFailure as failure:
        raise _CompilationError(f"{called or 'program '}instantiation failed: {failure}") from None
    return _Expression(tree, program, worst_cost(tree, lambda path: size_at(declared, path)))


def _field_path(text: str, schema: Schema) -> str:
    try:
        return read_field_path(text, schema).path if text else ""
    except FieldPathError:
        return ""
