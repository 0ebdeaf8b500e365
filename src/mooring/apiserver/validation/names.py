"""Formats of strings: DNS labels and subdomains, qualified names, ports, percentages, paths.

Input: a string. Output: error messages of kube-apiserver.

1. Lengths are counted in bytes, as Go does, although some messages say characters.
"""

from __future__ import annotations

import re
from functools import lru_cache

from mooring.api.labels import label_key_errors
from mooring.apiserver.validation.fields import FieldError, invalid

DNS_LABEL_LENGTH_MAX = 63
DNS_SUBDOMAIN_LENGTH_MAX = 253
PORT_NAME_LENGTH_MAX = 15
RESULTS_CACHED_MAX = 8_192

_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_UNDERSCORED_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_UNDERSCORED_SUBDOMAIN = rf"{_UNDERSCORED_LABEL}(\.{_UNDERSCORED_LABEL})*"
_DNS_1035_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_PERCENT = "[0-9]+%"
_HTTP_HEADER = "[-A-Za-z0-9]+"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_is_dns_label = re.compile(_DNS_LABEL).fullmatch
_is_dns_subdomain = re.compile(_DNS_SUBDOMAIN).fullmatch
_is_underscored_subdomain = re.compile(_UNDERSCORED_SUBDOMAIN).fullmatch
_is_dns_1035_label = re.compile(_DNS_1035_LABEL).fullmatch
_is_percent = re.compile(_PERCENT).fullmatch
_is_http_header = re.compile(_HTTP_HEADER).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_port_charset = re.compile("[-a-z0-9]+").fullmatch
_has_letter = re.compile("[a-z]").search

_DNS_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_DNS_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_UNDERSCORED_RULE = _DNS_SUBDOMAIN_RULE.replace("'-' or '.'", "'_', '-' or '.'")
_DNS_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character"
)


def matching_rule(rule: str, form: str, *examples: str) -> str:
    """The message of Kubernetes for a text that does not match a regular expression."""
    if not examples:
        return f"{rule} (regex used for validation is '{form}')"
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {listed}regex used for validation is '{form}')"


def length_rule(length_max: int, unit: str = "characters") -> str:
    return f"must be no more than {length_max} {unit}"


def range_rule(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


@lru_cache(maxsize=RESULTS_CACHED_MAX)
def dns_label_errors(value: str) -> tuple[str, ...]:
    errors = _too_long(value, DNS_LABEL_LENGTH_MAX)
    if not _is_dns_label(value):
        # For a subdomain the message is that dots are not allowed.
        if _is_dns_subdomain(value):
            return (*errors, "must not contain dots")
        return (*errors, matching_rule(_DNS_LABEL_RULE, _DNS_LABEL, "my-name", "123-abc"))
    return errors


@lru_cache(maxsize=RESULTS_CACHED_MAX)
def dns_subdomain_errors(value: str) -> tuple[str, ...]:
    errors = _too_long(value, DNS_SUBDOMAIN_LENGTH_MAX)
    if not _is_dns_subdomain(value):
        return (*errors, matching_rule(_DNS_SUBDOMAIN_RULE, _DNS_SUBDOMAIN, "example.com"))
    return errors


def long_name_errors(name: str, is_prefix: bool) -> tuple[str, ...]:
    """`k8s-long-name`, which validates the names of few kinds: as a subdomain, but a length is called bytes. The prefix
    of a generated name is not validated, only the complete name."""
    if is_prefix:
        return ()
    in_characters, in_bytes = (length_rule(DNS_SUBDOMAIN_LENGTH_MAX, unit) for unit in ("characters", "bytes"))
    return tuple(in_bytes if text == in_characters else text for text in dns_subdomain_errors(name))


def underscored_subdomain_errors(value: str) -> tuple[str, ...]:
    errors = _too_long(value, DNS_SUBDOMAIN_LENGTH_MAX)
    if not _is_underscored_subdomain(value):
        return (*errors, matching_rule(_UNDERSCORED_RULE, _UNDERSCORED_SUBDOMAIN, "example.com"))
    return errors


def dns_1035_label_errors(value: str) -> tuple[str, ...]:
    errors = _too_long(value, DNS_LABEL_LENGTH_MAX)
    if not _is_dns_1035_label(value):
        return (*errors, matching_rule(_DNS_1035_RULE, _DNS_1035_LABEL, "my-name", "abc-123"))
    return errors


@lru_cache(maxsize=RESULTS_CACHED_MAX)
def qualified_name_errors(value: str) -> tuple[str, ...]:
    """The rule of label keys, finalizers and resource names."""
    return tuple(label_key_errors(value))


def port_number_errors(port: int) -> tuple[str, ...]:
    return () if 1 <= port <= 65535 else (range_rule(1, 65535),)


def range_errors(value: int, low: int, high: int) -> tuple[str, ...]:
    return () if low <= value <= high else (range_rule(low, high),)


def port_name_errors(name: str) -> tuple[str, ...]:
    errors = list(_too_long(name, PORT_NAME_LENGTH_MAX))
    if not _is_port_charset(name):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _has_letter(name):
        errors.append("must contain at least one letter (a-z)")
    if "--" in name:
        errors.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return tuple(errors)


def percent_errors(text: str) -> tuple[str, ...]:
    rule = "a valid percent string must be a numeric string followed by an ending '%'"
    return () if _is_percent(text) else (matching_rule(rule, _PERCENT, "1%", "93%"),)


def http_header_name_errors(name: str) -> tuple[str, ...]:
    rule = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return () if _is_http_header(name) else (matching_rule(rule, _HTTP_HEADER, "X-Header-Name"),)


def relaxed_environment_name_errors(name: str) -> tuple[str, ...]:
    if not name:
        return ("environment variable name must be non-empty",)
    if name.isascii() and name.isprintable() and "=" not in name:
        return ()
    return ("a valid environment variable name must consist only of printable ASCII characters other than '='",)


def config_key_errors(key: str) -> tuple[str, ...]:
    errors = _too_long(key, DNS_SUBDOMAIN_LENGTH_MAX)
    if not _is_config_key(key):
        rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        errors += (matching_rule(rule, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"),)
    return errors + _directory_errors(key)


def path_segment_errors(name: str) -> tuple[str, ...]:
    """Messages about a name that is no path segment."""
    if name in (".", ".."):
        return (f"may not be '{name}'",)
    if "/" not in name and "%" not in name:
        return ()
    return tuple([f"may not contain '{character}'" for character in "/%" if character in name])


def _too_long(value: str, length_max: int) -> tuple[str, ...]:
    length = len(value) if value.isascii() else len(value.encode())
    return (length_rule(length_max),) if length > length_max else ()


def _directory_errors(value: str) -> tuple[str, ...]:
    if value == ".":
        return ("must not be '.'",)
    if value == "..":
        return ("must not be '..'",)
    return ("must not start with '..'",) if value.startswith("..") else ()


def validate_no_backsteps(value: str, path: str) -> list[FieldError]:
    """A path without `..`."""
    return [invalid(path, value, "must not contain '..'")] if ".." in value and ".." in value.split("/") else []


def validate_descending_path(value: str, path: str) -> list[FieldError]:
    """A relative path without `..`."""
    errors = [invalid(path, value, "must be a relative path")] if value.startswith("/") else []
    return errors + validate_no_backsteps(value, path)


def validate_unreserved_path(value: str, path: str) -> list[FieldError]:
    """Field errors of a relative path whose first part is not reserved by kubelets."""
    errors = validate_descending_path(value, path)
    if value.startswith("..") and not value.startswith("../"):
        errors.append(invalid(path, value, "must not start with '..'"))
    return errors


def validate_file_mode(mode: int | None, path: str) -> list[FieldError]:
    if mode is None or 0 <= mode <= 0o777:
        return []
    return [invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive")]
