"""Validate a value of a custom resource against the OpenAPI schema of its CRD.

Input: a schema as written in the CRD; a value, its path, and the old value that it replaces. Output: findings with the
texts of kube-apiserver, and a count of the checks that passed.

1. `ValueRules` reads a schema once and checks many values.
2. `anyOf` and `oneOf` report the findings of the alternative with the most passed checks.
3. Findings of an unchanged part are dropped, except inside `allOf`, `anyOf`, `oneOf` and `not`.
4. Findings with the same text are reported once.
5. All patterns together do a bounded amount of work for one object (`PatternBudget`). All checks together do, too, and
   so do the messages (`ValidationBudget`).
6. Integers are compared with truncated bounds, as in Go. A bound outside of the range of the type is an error of the
   value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from mooring.api.cel.patterns import PatternBudget, PatternWorkExceeded, compile_pattern
from mooring.api.document import Document, same_json
from mooring.api.field_errors import NO_PATH, go_json, quoted
from mooring.apiserver.custom.formats import check_of, known_format
from mooring.apiserver.custom.schema import CorrelatedValue, json_identity
from mooring.apiserver.validation.fields import (
    FieldError,
    Verbatim,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
    type_invalid,
)

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_FLOAT32_MAX = 3.4028235677973366e38
_JSON_INTEGER_MAX = 2.0**53 - 1
_ROUNDING_ERROR_MAX = 1e-9

CHECKS_MAX = 3_000_000
"""Values that may be checked for one object, once for each alternative. The largest object has about 700,000 values.
Further values are not checked: the object is invalid."""
MESSAGE_BYTES_MAX = 4 * 1024 * 1024
"""Messages about one object. Further ones are not listed."""

NumberFinding = tuple[str, str, Callable[[str], FieldError]]


class NumberRules:
    """The rules of a schema for numbers."""

    def __init__(self, raw: Document, type_name: str, form: str) -> None:
        self._type = type_name if type_name in ("integer", "number") else ""
        self._format = form if self._type else ""
        self._multiple = raw.get("multipleOf")
        self._minimum, self._is_above = raw.get("minimum"), raw.get("exclusiveMinimum", False)
        self._maximum, self._is_below = raw.get("maximum"), raw.get("exclusiveMaximum", False)

    def findings(self, value: int | float, path: str) -> Iterator[NumberFinding]:
        yield from self._out_of_range(value, "Checked", path)
        if self._multiple is not None:
            yield from self._out_of_range(self._multiple, "MultipleOf", path)
            yield from self._no_multiple(value, self._multiple, path)
        if self._minimum is not None:
            yield from self._out_of_range(self._minimum, "Minimum boundary", path)
            bound = _bound(value, self._minimum)
            if value < bound or (self._is_above and value == bound):
                message = "should be greater than" if self._is_above else "should be greater than or equal to"
                yield _wrong(f"{path} in body {message} {number_text(bound)}", path, value)
        if self._maximum is not None:
            yield from self._out_of_range(self._maximum, "Maximum boundary", path)
            bound = _bound(value, self._maximum)
            if value > bound or (self._is_below and value == bound):
                message = "should be less than" if self._is_below else "should be less than or equal to"
                yield _wrong(f"{path} in body {message} {number_text(bound)}", path, value)

    def _out_of_range(self, value: int | float, called: str, path: str) -> Iterator[NumberFinding]:
        if self._fits(value):
            return
        form = f"with format {self._format}" if self._format else "(default format)"
        message = f"{called} value must be of type {self._type} {form} in {path}"
        yield message, NO_PATH, lambda field: invalid(field, "", message)

    def _fits(self, value: int | float) -> bool:
        if self._type == "integer":
            low, high = (_INT32_MIN, _INT32_MAX) if self._format == "int32" else (_INT64_MIN, _INT64_MAX)
            return float(value).is_integer() and low <= value <= high
        return self._format != "float" or abs(value) < _FLOAT32_MAX

    def _no_multiple(self, value: int | float, factor: int | float, path: str) -> Iterator[NumberFinding]:
        if isinstance(value, int):
            factor = int(factor)
        if factor <= 0:
            message = f"factor MultipleOf declared for {path} must be positive: {number_text(factor)}"
            yield _wrong(message, path, factor)
        elif not _is_multiple(value, factor):
            yield _wrong(f"{path} in body should be a multiple of {number_text(factor)}", path, value)


_NO_NUMBER_RULES = NumberRules({}, "", "")


def number_rules(raw: Document, type_name: str, form: str) -> NumberRules:
    """The rules of a schema for a number. Most schemas have none, and a large definition has 50,000 schemas."""
    has_rules = type_name in ("integer", "number") or any(name in raw for name in ("multipleOf", "minimum", "maximum"))
    return NumberRules(raw, type_name, form) if has_rules else _NO_NUMBER_RULES


def number_text(value: int | float) -> str:
    """A number as Go prints it: the shortest text, with an exponent from a million on."""
    if isinstance(value, int):
        return str(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int), f"{value} is no JSON number"
    text = "".join(map(str, digits))
    power = len(text) - 1 + exponent
    if value == 0 or -4 <= power < 6:
        return repr(value).removesuffix(".0") if value else "0"
    mantissa = f"{text[0]}.{text[1:]}" if len(text) > 1 else text
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def is_whole(value: float) -> bool:
    """Whether a float has an integral value."""
    return value.is_integer() and -_JSON_INTEGER_MAX - 1 <= value <= _JSON_INTEGER_MAX


def _bound(value: int | float, bound: int | float) -> int | float:
    return int(bound) if isinstance(value, int) else float(bound)


def _is_multiple(value: int | float, factor: int | float) -> bool:
    if isinstance(value, int):
        return value % int(factor) == 0
    quotient = 1 / factor * value if factor < 1 else value / factor
    if not math.isfinite(quotient) or abs(quotient) > _JSON_INTEGER_MAX:
        return False
    whole = math.trunc(quotient)
    if quotient == whole:
        return True
    return whole != 0 and abs(quotient - whole) / (abs(quotient) + abs(whole)) < _ROUNDING_ERROR_MAX


def _wrong(message: str, path: str, value: int | float) -> NumberFinding:
    shown = value if isinstance(value, int) else Verbatim(number_text(value))
    return message, path, lambda field: invalid(field, shown, message)


class SchemaViolation(NamedTuple):
    """One violation. Two findings with the same message are one."""

    message: str
    path: str
    error: Callable[[str], FieldError]
    """From the path of the field to the error."""


class ValidationBudget(PatternBudget):
    """The work and the text that are left for one object. Schemas multiply both: each item of a list may fail each of a
    thousand alternatives, or a message with an enum of a megabyte."""

    __slots__ = ("checks_left", "message_bytes_left")

    def __init__(self) -> None:
        super().__init__()
        self.checks_left = CHECKS_MAX
        self.message_bytes_left = MESSAGE_BYTES_MAX

    @property
    def is_spent(self) -> bool:
        return self.checks_left < 0 or self.message_bytes_left < 0


class SchemaViolations(list[SchemaViolation]):
    """The violations of a value, up to the limits of the budget."""

    __slots__ = ("_budget", "_known")

    def __init__(self, budget: ValidationBudget) -> None:
        super().__init__()
        self._budget = budget
        self._known: set[str] = set()

    def add(self, finding: SchemaViolation) -> None:
        """Append a finding. Messages are counted in the list in which they are found first."""
        self._budget.message_bytes_left -= len(finding.message)
        self.merge(_SPENT if self._budget.is_spent else finding)

    def merge(self, finding: SchemaViolation) -> None:
        """Append a finding of a value below."""
        if finding.message not in self._known:
            self._known.add(finding.message)
            self.append(finding)


class ValidationOutcome(NamedTuple):
    findings: SchemaViolations
    matches: int


def validate_value(
    rules: ValueRules, value: Any, path: str = "", pair: CorrelatedValue | None = None
) -> list[FieldError]:
    """The errors of the value at a path."""
    return [_placed(finding, path) for finding in rules.check(value, "", pair, ValidationBudget()).findings]


def _placed(finding: SchemaViolation, path: str) -> FieldError:
    if finding.path == NO_PATH:
        return finding.error(path or NO_PATH)
    own = finding.path.removeprefix(".")
    return finding.error(f"{path}.{own}" if path and own else own or path or NO_PATH)


_NO_TEXTS: frozenset[str] = frozenset()
_INT_OR_STRING = ("integer", "string")
_ONE_TYPE = {name: (name,) for name in ("array", "boolean", "integer", "null", "number", "object", "string")}


class ValueRules:
    """The rules of one schema. A large definition has 50,000 schemas, so that empty lists are shared."""

    def __init__(self, raw: Document) -> None:
        name: str = raw.get("type", "")
        self._types: tuple[str, ...] = _ONE_TYPE.get(name) or ((name,) if name else ())
        if raw.get("x-kubernetes-int-or-string"):
            self._types = _INT_OR_STRING
        self._only_type = self._types[0] if len(self._types) == 1 else ""
        self._is_nullable: bool = raw.get("nullable", False)
        self._format = known_format(raw.get("format", ""), self._only_type)
        self._format_check = check_of(self._format) if self._format else None
        self._enum: Sequence[Any] = raw.get("enum") or ()
        self._enum_texts = (
            frozenset(choice for choice in self._enum if isinstance(choice, str)) if self._enum else _NO_TEXTS
        )
        self._numbers = number_rules(raw, self._only_type, self._format)
        self._length_min, self._length_max = raw.get("minLength"), raw.get("maxLength")
        self._pattern: str = raw.get("pattern", "")
        self._count_min, self._count_max = raw.get("minItems"), raw.get("maxItems")
        self._is_unique: bool = raw.get("uniqueItems", False)
        items = raw.get("items")
        self._items = ValueRules(items) if isinstance(items, dict) else None
        self._fields_min, self._fields_max = raw.get("minProperties"), raw.get("maxProperties")
        self._properties = {name: ValueRules(held) for name, held in (raw.get("properties") or {}).items()}
        additional = raw.get("additionalProperties")
        self._additional = ValueRules(additional) if isinstance(additional, dict) else None
        self._is_closed = additional is False
        self._places = {name: place for place, name in enumerate(self._properties)}
        self._required = tuple(dict.fromkeys(raw.get("required") or ()))
        self._all_of = tuple(ValueRules(held) for held in raw.get("allOf") or ())
        self._any_of = tuple(ValueRules(held) for held in raw.get("anyOf") or ())
        self._one_of = tuple(ValueRules(held) for held in raw.get("oneOf") or ())
        self._not = ValueRules(raw["not"]) if raw.get("not") is not None else None
        self._has_choices = bool(self._all_of or self._any_of or self._one_of or self._not)

    def check(self, value: Any, path: str, pair: CorrelatedValue | None, budget: ValidationBudget) -> ValidationOutcome:
        """Everything that is wrong with a value and below it."""
        findings, left = SchemaViolations(budget), budget.message_bytes_left
        budget.checks_left -= 1
        if budget.is_spent:
            findings.merge(_SPENT)
            return ValidationOutcome(findings, 0)
        matches = self._check_type(value, path, findings)
        if value is None:
            self._check_enum(value, path, findings)
        else:
            matches += 2 if self._types or self._format else 1
            matches += self._check_choices(value, path, findings, budget) + 1
            if isinstance(value, str):
                matches += self._check_text(value, path, findings, budget)
            elif isinstance(value, int | float) and not isinstance(value, bool):
                matches += 2
                for message, place, error in self._numbers.findings(value, path):
                    findings.add(SchemaViolation(message, place, error))
            elif isinstance(value, list):
                matches += self._check_items(value, path, findings, pair, budget) + 1
            self._check_enum(value, path, findings)
            matches += 1
            if isinstance(value, dict):
                matches += self._check_fields(value, path, findings, pair, budget) + 1
        if findings and pair is not None and pair.is_same:
            findings, budget.message_bytes_left = SchemaViolations(budget), left
        return ValidationOutcome(findings, matches)

    # ------------------------------------------------------------------------------------------------ the value

    def _check_type(self, value: Any, path: str, findings: SchemaViolations) -> int:
        if value is None:
            if self._types and not self._is_nullable:
                findings.add(_wrong_type(path, ",".join(self._types), "null"))
                return 0
            return 1
        if not self._types and not self._format:
            return 0
        have, form = _type_of(value)
        is_number = self._only_type in ("number", "integer") or "integer" in self._types
        fits = have in self._types or (have == "integer" and "number" in self._types)
        if have == "number" and "integer" in self._types:
            fits = fits or is_whole(value)
        if self._format and have not in ("string", "array") and not (fits or form == self._format):
            findings.add(_wrong_type(path, self._format, form))
            return 0
        if self._format and not is_number and have in ("string", "array"):
            return 1
        if not fits:
            findings.add(_wrong_type(path, ",".join(self._types), have))
            return 0
        return 1

    def _check_enum(self, value: Any, path: str, findings: SchemaViolations) -> None:
        if self._enum and not self._is_chosen(value):
            choices = [choice if isinstance(choice, str) else go_json(choice) for choice in self._enum]
            message = f"{path} in body should be one of {choices}"
            findings.add(SchemaViolation(message, path, lambda field: not_supported(field, value, choices)))

    def _is_chosen(self, value: Any) -> bool:
        if isinstance(value, str):
            return value in self._enum_texts
        return any(_is_choice(value, choice) for choice in self._enum)

    def _check_text(self, value: str, path: str, findings: SchemaViolations, budget: ValidationBudget) -> int:
        length, message = len(value), ""
        if self._length_max is not None and length > self._length_max:
            length_max: int = self._length_max
            message = f"{path} in body should be at most {length_max} chars long"
            findings.add(SchemaViolation(message, path, lambda field: too_long(field, length_max)))
        elif self._length_min is not None and length < self._length_min:
            message = f"{path} in body should be at least {self._length_min} chars long"
            findings.add(_plain(message, path, value))
        elif self._pattern:
            self._check_pattern(value, path, findings, budget)
        if self._format_check is None:
            return 1
        if not self._format_check(value):
            findings.add(_wrong_type(path, self._format, value))
        return 2

    def _check_pattern(self, value: str, path: str, findings: SchemaViolations, budget: ValidationBudget) -> None:
        pattern = compile_pattern(self._pattern)
        try:
            budget.spend(pattern.work(value))
            is_found = pattern.is_found_in(value)
        except PatternWorkExceeded:
            findings.add(_plain(f"{path} in body is too long to be matched against '{self._pattern}'", path, value))
        else:
            if not is_found:
                findings.add(_plain(f"{path} in body should match '{self._pattern}'", path, value))

    # ------------------------------------------------------------------------------------------- what is inside

    def _check_items(
        self,
        items: list[Any],
        path: str,
        findings: SchemaViolations,
        pair: CorrelatedValue | None,
        budget: ValidationBudget,
    ) -> int:
        matches = 1
        if self._items is not None:
            for index, item in enumerate(items):
                below = pair.item(index) if pair is not None else None
                inner = self._items.check(item, f"{path}[{index}]", below, budget)
                matches += _merge(findings, inner)
        count = len(items)
        if self._count_min is not None and count < self._count_min:
            message = f"{path} in body should have at least {self._count_min} items"
            findings.add(_plain(message, path, count))
        if self._count_max is not None and count > self._count_max:
            count_max: int = self._count_max
            message = f"{path} in body should have at most {count_max} items"
            findings.add(SchemaViolation(message, path, lambda field: too_many(field, count, count_max)))
        if self._is_unique and len({json_identity(item) for item in items}) < count:
            findings.add(_plain(f"{path} in body shouldn't contain duplicates", path, ""))
        return matches

    def _check_fields(
        self,
        fields: Document,
        path: str,
        findings: SchemaViolations,
        pair: CorrelatedValue | None,
        budget: ValidationBudget,
    ) -> int:
        matches, count = 0, len(fields)
        if self._fields_min is not None and count < self._fields_min:
            message = f"{path} in body should have at least {self._fields_min} properties"
            findings.add(_plain(message, path, count))
        if self._fields_max is not None and count > self._fields_max:
            fields_max: int = self._fields_max
            message = f"{path} in body should have at most {fields_max} properties"
            findings.add(SchemaViolation(message, path, lambda field: too_many(field, count, fields_max)))
        if self._is_closed:
            for name in fields:
                if name not in self._properties:
                    findings.add(_plain(f"{path}.{name} in body is a forbidden property", path, name))
        elif self._additional is not None:
            for name, value in fields.items():
                if name not in self._properties:
                    inner = self._additional.check(value, f"{path}.{name}", _pair_below(pair, path, name), budget)
                    matches += _merge(findings, inner)
        # In the order of the schema, without a walk through all of it for each of many small objects.
        for name in sorted(self._places.keys() & fields.keys(), key=self._places.__getitem__):
            below = f"{path}.{name}" if path else name
            inner = self._properties[name].check(fields[name], below, _pair_below(pair, path, name), budget)
            matches += _merge(findings, inner)
        for name in self._required:
            if budget.is_spent:
                break
            if name not in fields:
                findings.add(SchemaViolation(f"{path}.{name} in body is required", f"{path}.{name}", required))
        return matches

    # --------------------------------------------------------------------------------------------- alternatives

    def _check_choices(self, value: Any, path: str, findings: SchemaViolations, budget: ValidationBudget) -> int:
        if not self._has_choices:
            return 1
        matches, left = 1, budget.message_bytes_left
        if self._any_of:
            matches += self._check_any(value, path, findings, budget)
        if self._one_of:
            matches += self._check_one(value, path, findings, budget)
        if self._all_of:
            results = [rules.check(value, path, None, budget) for rules in self._all_of]
            matches += sum(_merge(findings, result) for result in results)
            failed = sum(bool(result.findings) for result in results)
            if failed:
                none = ". None validated" if failed == len(results) else ""
                findings.add(_nowhere(f"{quoted(path)} must validate all the schemas (allOf){none}"))
        if self._not is not None and not self._not.check(value, path, None, budget).findings:
            findings.add(_nowhere(f"{quoted(path)} must not validate the schema (not)"))
        # Alternatives that failed cost nothing: only the messages that are left count.
        budget.message_bytes_left = left - sum(len(finding.message) for finding in findings)
        return matches

    def _check_any(self, value: Any, path: str, findings: SchemaViolations, budget: ValidationBudget) -> int:
        best: ValidationOutcome | None = None
        for rules in self._any_of:
            result = rules.check(value, path, None, budget)
            if not result.findings:
                return result.matches
            if best is None or result.matches > best.matches:
                best = result
        findings.add(_nowhere(f"{quoted(path)} must validate at least one schema (anyOf)"))
        return _merge(findings, best) if best is not None else 0

    def _check_one(self, value: Any, path: str, findings: SchemaViolations, budget: ValidationBudget) -> int:
        results = [rules.check(value, path, None, budget) for rules in self._one_of]
        valid = [result for result in results if not result.findings]
        if len(valid) == 1:
            return valid[0].matches
        why = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
        findings.add(_nowhere(f"{quoted(path)} must validate one and only one schema (oneOf). {why}"))
        if valid:
            return 0
        best = results[0]
        for result in results[1:]:
            if result.matches > best.matches:
                best = result
        return _merge(findings, best)


def _pair_below(pair: CorrelatedValue | None, path: str, name: str) -> CorrelatedValue | None:
    # Old and new are read in the same version, so that these are always equal.
    if pair is None or (not path and name in ("kind", "apiVersion")):
        return None
    return pair.field(name)


def _type_of(value: Any) -> tuple[str, str]:
    """The type of a value, and the format that Go gives it."""
    match value:
        case bool():
            return "boolean", ""
        case str():
            return "string", ""
        case int():
            return "integer", "int64"
        case float():
            return "number", "float64"
        case list():
            return "array", ""
        case _:
            return "object", ""


def _is_choice(value: Any, choice: Any) -> bool:
    if choice is None or value is None:
        return False
    if isinstance(value, bool) or isinstance(choice, bool) or not isinstance(value, int | float):
        return same_json(value, choice)
    # Go converts a number to the type of the choice first.
    match choice:
        case int():
            return int(value) == choice
        case float():
            return float(value) == choice
        case _:
            return False


def _wrong_type(path: str, expected: str, found: str) -> SchemaViolation:
    message = f"{path} in body must be of type {expected}: {quoted(found)}"
    return SchemaViolation(message, path, lambda field: type_invalid(field, found, message))


def _plain(message: str, path: str, value: object) -> SchemaViolation:
    return SchemaViolation(message, path, lambda field: invalid(field, value, message))


def _nowhere(message: str) -> SchemaViolation:
    """A violation without a field."""
    return SchemaViolation(message, NO_PATH, lambda field: invalid(field, "", message))


def _merge(findings: SchemaViolations, inner: ValidationOutcome) -> int:
    for finding in inner.findings:
        findings.merge(finding)
    return inner.matches


_SPENT = _nowhere(
    "the object and its schema are too complex: not everything was validated, and further errors are not listed"
)
