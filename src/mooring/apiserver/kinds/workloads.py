"""Shared parts of kinds with a pod template: counts, percentages, selectors, warnings, columns.

1. Values in errors print as in Go: selectors with their fields in order, labels sorted, absent labels as `null`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.api.document import Document
from mooring.api.errors import LabelSelectorError
from mooring.api.field_errors import quoted
from mooring.api.labels import NOTHING, LabelMatcher, compile_selector
from mooring.api.views.meta import LabelSelector, LabelSelectorRequirement
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.pod.defaults import WithEmptyLabels
from mooring.apiserver.kinds.pod.prepare import drop_disabled_template_fields
from mooring.apiserver.kinds.pod.resources import NOT_NEGATIVE
from mooring.apiserver.kinds.pod.warnings import name_warnings, pod_template_warnings
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import AGE, NAME, column, integer, wide
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.names import percent_errors
from mooring.apiserver.validation.selectors import validate_label_selector

MISMATCH = "`selector` does not match template `labels`"
RESTART_ALWAYS = "Always"
HISTORY_MAX = 10


# --- a number or a percentage -----------------------------------------------------------------------------------


def validate_int_or_percent(value: int | str, path: str) -> list[FieldError]:
    if isinstance(value, str):
        return [invalid(path, value, text) for text in percent_errors(value)]
    return [invalid(path, value, NOT_NEGATIVE)] if value < 0 else []


def validate_at_most_100_percent(value: int | str, path: str) -> list[FieldError]:
    percent = _percent(value)
    return [invalid(path, value, "must not be greater than 100%")] if percent is not None and percent > 100 else []


def int_or_percent(value: int | str | None) -> int:
    """The number of a count or percentage; 0 for any other text."""
    percent = _percent(value)
    if percent is not None:
        return percent
    if isinstance(value, str):
        digits = value[1:] if value[:1] in ("+", "-") else value
        return int(value) if digits.isascii() and digits.isdigit() else 0
    return value or 0


def _percent(value: int | str | None) -> int | None:
    return int(value[:-1]) if isinstance(value, str) and not percent_errors(value) else None


# --- selectors and templates ------------------------------------------------------------------------------------


def selector_matcher(selector: Document | None) -> LabelMatcher | None:
    """The compiled selector; None if it has an error. No selector matches nothing."""
    if selector is None:
        return NOTHING
    view = LabelSelector(
        match_labels=selector.get("matchLabels") or {},
        match_expressions=tuple(
            LabelSelectorRequirement(
                key=match_expression.get("key", ""),
                operator=match_expression.get("operator", ""),
                values=tuple(match_expression.get("values") or ()),
            )
            for match_expression in selector.get("matchExpressions") or ()
        ),
    )
    try:
        return compile_selector(view)
    except LabelSelectorError:
        return None


def is_empty_selector(selector: Document) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def validate_workload_selector(selector: Document | None, path: str, owner: str) -> list[FieldError]:
    """A selector that must be there and must not select all pods; `owner` is the kind in the error."""
    if selector is None:
        return [required(path)]
    errors = validate_label_selector(selector, path)
    if is_empty_selector(selector):
        errors.append(invalid(path, {}, f"empty selector is invalid for {owner}"))
    return errors


def template_labels(template: Document) -> Document | None:
    """The labels in the template; None if absent, `{}` if the client sent an empty map."""
    metadata = template.get("metadata", {})
    labels: Document | None = metadata.get("labels")
    return {} if labels is None and isinstance(metadata, WithEmptyLabels) else labels


def validate_selector_matches(matcher: LabelMatcher, template: Document, path: str) -> list[FieldError]:
    """Whether a selector selects the pods of its own template; `path` is the template's."""
    labels = template_labels(template)
    if matcher.matches(labels or {}):
        return []
    return [invalid(f"{path}.metadata.labels", labels_value(labels), MISMATCH)]


def validate_restart_policy_always(template: Document, owner: str, path: str) -> list[FieldError]:
    """The restart policy must be Always, and there must be no deadline. `path` is that of the template."""
    spec = template.get("spec") or {}
    field_errors = []
    restart = spec.get("restartPolicy", "")
    if restart != RESTART_ALWAYS:
        field_errors.append(not_supported(f"{path}.spec.restartPolicy", restart, (RESTART_ALWAYS,)))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {owner} is not Supported"
        field_errors.append(forbidden(f"{path}.spec.activeDeadlineSeconds", detail))
    return field_errors


def validate_immutable_selector(new: Document | None, old: Document | None, path: str) -> list[FieldError]:
    return [] if new == old else [invalid(path, selector_value(new), IMMUTABLE)]


def validate_not_decremented(status: Document, old_status: Document, path: str) -> list[FieldError]:
    """The count of hash collisions must not decrease or be removed."""
    new, old = status.get("collisionCount"), old_status.get("collisionCount")
    if old is None or (new is not None and new >= old):
        return []
    return [invalid(f"{path}.collisionCount", new or 0, "cannot be decremented")]


def validate_at_most(status: Document, fields: Sequence[str], limit: str, detail: str, path: str) -> list[FieldError]:
    """A count must not exceed the total."""
    count_max = status.get(limit, 0)
    counts = {field: status.get(field, 0) for field in fields}
    return [invalid(f"{path}.{field}", count, detail) for field, count in counts.items() if count > count_max]


def selector_value(selector: Document | None) -> Document | None:
    """A selector in the order in which Go prints it."""
    if selector is None:
        return None
    value: Document = {}
    if labels := selector.get("matchLabels"):
        value["matchLabels"] = labels_value(labels)
    if expressions := selector.get("matchExpressions"):
        value["matchExpressions"] = [
            {name: expression[name] for name in ("key", "operator", "values") if name in expression}
            for expression in expressions
        ]
    return value


def labels_value(labels: Mapping[str, str] | None) -> Document | None:
    return None if labels is None else dict(sorted(labels.items()))


class WorkloadStrategy(Strategy):
    """A kind whose spec holds a pod template.

    With `shares_parts`, defaults and validation concern the spec only, or are in `default_metadata`.
    """

    def empty_status(self) -> Document:
        """A status without any set field, as Go writes it."""
        return {}

    def template(self, obj: Document) -> Document:
        template: Document = obj["spec"]["template"]
        return template

    def default_metadata(self, metadata: Document) -> None:
        """Fill in metadata; only where `shares_parts`."""

    def default_update(self, obj: Document, old: Document) -> None:
        if self.shares_parts and obj["spec"] is old["spec"]:
            self.default_metadata(obj["metadata"])
        else:
            self.default(obj)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["status"] = self.empty_status()
        obj["metadata"]["generation"] = 1
        drop_disabled_template_fields(self.template(obj), None)

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        if obj["spec"] is not old["spec"]:
            drop_disabled_template_fields(self.template(obj), self.template(old))
        super().prepare_for_update(obj, old, call)

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return pod_template_warnings(self.template(obj), "spec.template")

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        if obj["metadata"].get("generation") == old["metadata"].get("generation"):
            return []
        return pod_template_warnings(self.template(obj), "spec.template")


def pod_name_warnings(name: str) -> list[str]:
    """The name becomes a part of the names and hostnames of pods."""
    return name_warnings(name, "this is used in Pod names and hostnames, which can result in surprising behavior")


def name_spec_status(obj: Document) -> tuple[str, Document, Document]:
    return obj["metadata"]["name"], obj.get("spec") or {}, obj.get("status") or {}


def replica_counts(obj: Document) -> tuple[int, int, int]:
    _, spec, status = name_spec_status(obj)
    return spec.get("replicas") or 0, status.get("replicas", 0), status.get("readyReplicas", 0)


CONTAINERS_COLUMN = wide("Containers", "The names of the containers of its pods.")
IMAGES_COLUMN = wide("Images", "What these containers run.")
SELECTOR_COLUMN = wide("Selector", "Which pods are its own.")
REPLICA_COLUMNS = (
    NAME,
    integer("Desired", "How many pods it should have."),
    integer("Current", "How many it has."),
    integer("Ready", "How many of them are ready."),
    AGE,
    CONTAINERS_COLUMN,
    IMAGES_COLUMN,
    SELECTOR_COLUMN,
)
READY_COLUMN = column("Ready", "How many of its pods are ready, of how many wanted.")


def int64_error(text: str) -> str:
    """The error of Go's ParseInt for a text that is no 64-bit integer; otherwise empty."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit():
        return f"strconv.ParseInt: parsing {quoted(text)}: invalid syntax"
    if not -(2**63) <= int(text) < 2**63:
        return f"strconv.ParseInt: parsing {quoted(text)}: value out of range"
    return ""
