"""Compile the CEL validation rules of a CRD.

Input: the rules of one node of a schema. Output: a `CompiledRule` for each, in the same order; `DeclaredType`: the CEL
type of the node, and how large a value can be.

1. A rule or `messageExpression` that does not compile has an error text and no program.
2. Every program is metered, because the size of its values is not bounded.
3. CEL sees only what has a type in the schema: no unknown fields, nor lists and maps of them.
4. A name that is no CEL identifier is escaped (`__dash__`); a name that cannot be escaped is not visible.
5. Sizes are at most what one request can hold.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from mooring.api.cel import types
from mooring.api.cel.call_estimates import CostRange
from mooring.api.cel.checker import check, validate
from mooring.api.cel.compiler import Program, compile_tree
from mooring.api.cel.conversions import RUNTIME_TYPES
from mooring.api.cel.environment import FUNCTIONS, Environment
from mooring.api.cel.errors import NOWHERE, CelSource, ProgramFailure
from mooring.api.cel.estimates import Path, worst_cost
from mooring.api.cel.parser import NESTED_TOO_DEEPLY, parse
from mooring.api.cel.syntax import Identifier, SyntaxNode, descendants
from mooring.api.cel.types import BOOL, STRING, CelType, TypeKind
from mooring.api.document import Document
from mooring.apiserver.custom.schema import FieldPathError, Schema, noted, read_field_path

REQUEST_BYTES_MAX = 3 * 1024 * 1024
SELF, OLD_SELF = "self", "oldSelf"
_SELF_TYPE = "selfType"
_DURATION_LENGTH_MAX, _MOMENT_LENGTH_MAX, _DATE_LENGTH = 32, 32, 12
_RESERVED = frozenset(
    {
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
        *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
    }
)
_ESCAPED = re.compile(r"__|[-./]|[^a-zA-Z0-9-./_]")
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


@dataclass(slots=True, eq=False)
class DeclaredType:
    """A CEL type, and the types of its fields or items."""

    type: CelType
    size_max: int = 0
    """Of letters, items or entries; 0 for what has none."""
    bytes_min: int = 2
    """What the smallest value takes in a request."""
    element: DeclaredType | None = None
    fields: dict[str, DeclaredType] = field(default_factory=dict)


def declared_type(schema: Schema, *, is_root: bool, name: str = _SELF_TYPE) -> DeclaredType | None:
    """The CEL type of a schema; None if rules cannot access such values."""
    if schema.is_int_or_string:
        return DeclaredType(types.DYN, _length_max(schema.raw, REQUEST_BYTES_MAX - 2), 1)
    if is_root:
        schema = with_object_meta(schema)
    match schema.type:
        case "array":
            return _list_type(schema, name)
        case "object" if schema.additional is not None:
            return _map_type(schema, schema.additional, name)
        case "object":
            return _object_type(schema, name)
        case "string":
            return _text_type(schema.raw)
        case "boolean":
            return DeclaredType(types.BOOL, bytes_min=4)
        case "number":
            return DeclaredType(types.DOUBLE, bytes_min=1)
        case "integer":
            return DeclaredType(types.INT, bytes_min=1)
        case _:
            return None


def with_object_meta(schema: Schema) -> Schema:
    """A resource has a kind, an apiVersion and a name, also without a schema for them."""
    text = noted(Schema({"type": "string"}, type="string"))
    metadata = noted(Schema({}, type="object", properties={"name": text, "generateName": text}))
    known = {**schema.properties, "kind": text, "apiVersion": text, "metadata": metadata}
    own = schema.properties
    is_complete = (
        all(name in own and own[name].type == "string" for name in ("kind", "apiVersion"))
        and "metadata" in own
        and all(name in own["metadata"].properties for name in ("name", "generateName"))
    )
    if is_complete:
        return schema
    return noted(Schema(schema.raw, type=schema.type, properties=known, additional=schema.additional))


def environment_of(declared: DeclaredType, *, is_old_optional: bool) -> Environment:
    """The names that a rule on values of a type may use."""
    fields: dict[str, dict[str, CelType]] = {}
    _collect_fields(declared, fields)
    old = types.optional_of(declared.type) if is_old_optional else declared.type
    return Environment(FUNCTIONS, {SELF: declared.type, OLD_SELF: old}, RUNTIME_TYPES, fields)


def size_at(declared: DeclaredType, path: Path) -> CostRange | None:
    """How large the value at a path can be; None if there is none."""
    if not path:
        return None
    at = declared
    for name in path[1:]:
        below = _below(at, name)
        if below is None:
            return None
        at = below
    return CostRange(0, at.size_max)


def _below(declared: DeclaredType, name: str) -> DeclaredType | None:
    match name:
        case "@items" | "@values":
            return declared.element
        case "@keys":
            return DeclaredType(types.STRING) if declared.type.kind is TypeKind.MAP else None
        case _:
            return declared.fields.get(name)


def escaped(name: str) -> str:
    """A name as CEL writes it; empty if it cannot."""
    if not name or "0" <= name[0] <= "9":
        return ""
    if name in _RESERVED:
        return f"__{name}__"
    found = _ESCAPED.findall(name)
    if any(part not in _ESCAPES for part in found):
        return ""
    return _ESCAPED.sub(lambda part: _ESCAPES[part[0]], name) if found else name


def _list_type(schema: Schema, name: str) -> DeclaredType | None:
    if schema.items is None:
        return None
    element = declared_type(schema.items, is_root=schema.items.is_embedded, name=f"{name}.@idx")
    if element is None:
        return None
    limit = schema.raw.get("maxItems")
    count_max = max(limit, 0) if limit is not None else (REQUEST_BYTES_MAX - 2) // (element.bytes_min + 1)
    return DeclaredType(types.list_of(element.type), count_max, 2, element)


def _map_type(schema: Schema, additional: Schema, name: str) -> DeclaredType | None:
    element = declared_type(additional, is_root=additional.is_embedded, name=f"{name}.@elem")
    if element is None:
        return None
    limit = schema.raw.get("maxProperties")
    count_max = max(limit, 0) if limit is not None else (REQUEST_BYTES_MAX - 2) // (element.bytes_min + 6)
    return DeclaredType(types.map_of(types.STRING, element.type), count_max, 2, element)


def _object_type(schema: Schema, name: str) -> DeclaredType:
    found: dict[str, DeclaredType] = {}
    bytes_min = 2
    needed = schema.raw.get("required") or ()
    for field_name, held in schema.properties.items():
        declared = declared_type(held, is_root=held.is_embedded, name=f"{name}.{field_name}")
        if declared is None:
            continue
        if cel_name := escaped(field_name):
            found[cel_name] = declared
        if field_name in needed and held.default is None:
            bytes_min += len(field_name.encode()) + declared.bytes_min + 4
    return DeclaredType(CelType(TypeKind.STRUCT, name), 0, bytes_min, fields=found)


def _text_type(raw: dict[str, Any]) -> DeclaredType:
    request = REQUEST_BYTES_MAX - 2
    match raw.get("format", ""):
        case "byte":
            limit = raw.get("maxLength")
            return DeclaredType(types.BYTES, max(limit, 0) if limit is not None else request)
        case "duration":
            return DeclaredType(types.DURATION, _DURATION_LENGTH_MAX, 3)
        case "date":
            return DeclaredType(types.TIMESTAMP, _DATE_LENGTH, _DATE_LENGTH)
        case "date-time":
            return DeclaredType(types.TIMESTAMP, _MOMENT_LENGTH_MAX, 21)
    choices = raw.get("enum")
    if raw.get("maxLength") is None and choices:
        return DeclaredType(
            types.STRING, max((len(choice.encode()) for choice in choices if isinstance(choice, str)), default=0)
        )
    return DeclaredType(types.STRING, _length_max(raw, request))


def _length_max(raw: dict[str, Any], otherwise: int) -> int:
    """A letter takes up to four bytes."""
    limit = raw.get("maxLength")
    return max(limit, 0) * 4 if limit is not None else otherwise


def _collect_fields(declared: DeclaredType, fields: dict[str, dict[str, CelType]]) -> None:
    if declared.type.kind is TypeKind.STRUCT:
        fields[declared.type.name] = {name: held.type for name, held in declared.fields.items()}
        for held in declared.fields.values():
            _collect_fields(held, fields)
    elif declared.element is not None:
        _collect_fields(declared.element, fields)


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


def compiled_rules(schema: Schema, declared: DeclaredType) -> list[CompiledRule]:
    """The compiled rules of a node."""
    if not schema.rules:
        return []
    plain = environment_of(declared, is_old_optional=False)
    optional = environment_of(declared, is_old_optional=True)
    return [
        _compiled(schema, rule, optional if rule.get("optionalOldSelf") else plain, declared) for rule in schema.rules
    ]


def cardinality_max(declared: DeclaredType) -> int:
    """The maximum number of values of a type in one request."""
    return REQUEST_BYTES_MAX // (declared.bytes_min + 1)


class _CompilationError(Exception):
    """The expression does not compile."""


@dataclass(frozen=True, slots=True)
class _Expression:
    tree: SyntaxNode
    program: Program
    cost_max: int


def _compiled(schema: Schema, rule: Document, environment: Environment, declared: DeclaredType) -> CompiledRule:
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
        otherwise = "messageExpression must evaluate to a string"
        try:
            message = _expression(
                rule["messageExpression"], environment, declared, STRING, otherwise, "messageExpression "
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
    text: str, environment: Environment, declared: DeclaredType, type_expected: CelType, otherwise: str, called: str
) -> _Expression:
    source = CelSource(text, may_bind=False)
    try:
        tree = parse(source)
        if not source.errors:
            check(tree, source, environment)
        if not source.errors:
            validate(tree, source, environment)
        if source.errors:
            raise _CompilationError(f"{called}compilation failed: {source.error_report()}")
        if tree.type != type_expected:
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
