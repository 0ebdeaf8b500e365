"""Parameters of a request: from strings to options.

Input: the query of a path. Output: list, write and delete options; or a `StatusError` with kube-apiserver's message.

1. Unknown parameters are ignored.
2. A flag is false if it is absent, `false` in any case (Python writes `False`) or `0`; every other text is true.
3. A watch without a resourceVersion begins with the state, as with `sendInitialEvents`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mooring.api.document import Document
from mooring.api.durations import parse_duration
from mooring.apiserver.call import FieldValidation
from mooring.apiserver.errors import invalid_object
from mooring.apiserver.registry.delete import META_GROUP, validate_dry_run
from mooring.apiserver.storage.selection import check_selectors
from mooring.apiserver.validation.fields import FieldError, forbidden, not_supported, required
from mooring.apiserver.validation.metadata import validate_field_manager
from mooring.client.errors import BadRequestError

EXACT = "Exact"
NOT_OLDER_THAN = "NotOlderThan"
_INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The parameters of a list or a watch."""

    labels: str = ""
    fields: str = ""
    is_watch: bool = False
    bookmarks: bool = False
    revision: str = ""
    match: str = ""
    timeout_s: int | None = None
    limit: int = 0
    continue_token: str = ""
    initial_events: bool | None = None


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The parameters of a create, an update or a patch."""

    is_dry_run: bool = False
    field_manager: str = ""
    field_validation: FieldValidation = FieldValidation.WARN
    is_forced: bool = False


class Query:
    """The parameters of one request."""

    def __init__(self, parameters: Mapping[str, Sequence[str]]) -> None:
        self._parameters = parameters

    def everything(self) -> dict[str, list[str]]:
        return {name: list(values) for name, values in self._parameters.items()}

    def text(self, name: str) -> str:
        found = self._parameters.get(name)
        return found[0] if found else ""

    def texts(self, name: str) -> list[str]:
        return list(self._parameters.get(name, ()))

    def flag(self, name: str) -> bool:
        found = self._parameters.get(name)
        return found is not None and found[0] != "0" and found[0].lower() != "false"

    def optional_flag(self, name: str) -> bool | None:
        return self.flag(name) if name in self._parameters else None

    def has(self, name: str) -> bool:
        return name in self._parameters

    def integer(self, name: str) -> int | None:
        found = self._parameters.get(name)
        return None if found is None else _integer(found[0])

    def check_timeout(self) -> None:
        """Raises `BadRequestError` for an invalid `timeout`. A valid one has no effect."""
        try:
            if text := self.text("timeout"):
                parse_duration(text)
        except ValueError as error:
            raise BadRequestError(f"invalid timeout specified in the request URL - {error}") from None

    def check_export(self) -> None:
        """Raises `BadRequestError` for parameters of a get that older servers had."""
        if self.flag("export"):
            raise BadRequestError("the export parameter, deprecated since v1.14, is no longer supported")

    # ---------------------------------------------------------------------------------------------- options

    def list_options(self) -> ListOptions:
        options = ListOptions(
            labels=self.text("labelSelector"),
            fields=self.text("fieldSelector"),
            is_watch=self.flag("watch"),
            bookmarks=self.flag("allowWatchBookmarks"),
            revision=self.text("resourceVersion"),
            match=self.text("resourceVersionMatch"),
            timeout_s=self.integer("timeoutSeconds"),
            limit=max(0, self.integer("limit") or 0),
            continue_token=self.text("continue"),
            initial_events=self.optional_flag("sendInitialEvents"),
        )
        has_initial_state_options = options.initial_events is not None or options.match
        if options.is_watch and options.revision in ("", "0") and not has_initial_state_options:
            return replace(options, initial_events=True, match=NOT_OLDER_THAN)
        return options

    def write_options(self, options_kind: str, *, is_apply: bool = False) -> WriteOptions:
        """`options_kind` is `CreateOptions`, `UpdateOptions` or `PatchOptions`."""
        manager, validation, dry_runs = self.text("fieldManager"), self.text("fieldValidation"), self.texts("dryRun")
        force = self.optional_flag("force") if options_kind == "PatchOptions" else None
        errors: list[FieldError] = []
        if options_kind == "PatchOptions":
            if is_apply and not manager:
                errors.append(required("fieldManager", "is required for apply patch"))
            if not is_apply and force is not None:
                errors.append(forbidden("force", "may not be specified for non-apply patch"))
        errors += validate_field_manager(manager, "fieldManager")
        errors += validate_dry_run(dry_runs)
        if validation not in ("", "Ignore", "Strict", "Warn"):
            errors.append(not_supported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
        if errors:
            raise invalid_object(options_kind, META_GROUP, "", errors)
        chosen = FieldValidation(validation) if validation else FieldValidation.WARN
        return WriteOptions(bool(dry_runs), manager, chosen, bool(force))

    def delete_options(self) -> Document:
        """The parameters as a DeleteOptions document."""
        options: Document = {}
        if (grace_s := self.integer("gracePeriodSeconds")) is not None:
            options["gracePeriodSeconds"] = grace_s
        if (orphans := self.optional_flag("orphanDependents")) is not None:
            options["orphanDependents"] = orphans
        if "propagationPolicy" in self._parameters:
            options["propagationPolicy"] = self.text("propagationPolicy")
        if dry_runs := self.texts("dryRun"):
            options["dryRun"] = dry_runs
        return options


def check_list_options(options: ListOptions) -> None:
    """Raises `BadRequestError` if a selector cannot be read, and `InvalidError` if the options do not go together."""
    check_selectors(options.labels, options.fields)
    errors = _validate_watch(options) if options.is_watch else _validate_list(options)
    if errors:
        raise invalid_object("ListOptions", META_GROUP, "", errors)


def _validate_list(options: ListOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    if options.match:
        if not options.revision:
            detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            errors.append(forbidden("resourceVersionMatch", detail))
        if options.continue_token:
            detail = "resourceVersionMatch is forbidden when continue is provided"
            errors.append(forbidden("resourceVersionMatch", detail))
        if options.match not in (EXACT, NOT_OLDER_THAN):
            errors.append(not_supported("resourceVersionMatch", options.match, (EXACT, NOT_OLDER_THAN, "")))
        if options.match == EXACT and options.revision == "0":
            detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            errors.append(forbidden("resourceVersionMatch", detail))
    if options.initial_events is not None:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _validate_watch(options: ListOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    if options.initial_events is not None and options.match != NOT_OLDER_THAN:
        detail = f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER_THAN}"
        errors.append(forbidden("resourceVersionMatch", detail))
    if options.match:
        if options.initial_events is None:
            detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            errors.append(forbidden("resourceVersionMatch", detail))
        if options.match != NOT_OLDER_THAN:
            errors.append(not_supported("resourceVersionMatch", options.match, (NOT_OLDER_THAN,)))
        if options.continue_token:
            detail = "resourceVersionMatch is forbidden when continue is provided"
            errors.append(forbidden("resourceVersionMatch", detail))
    return errors


def _integer(text: str) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdecimal()):
        raise BadRequestError(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    number = int(text)
    if not -_INT64_MAX - 1 <= number <= _INT64_MAX:
        raise BadRequestError(f'strconv.ParseInt: parsing "{text}": value out of range')
    return number
