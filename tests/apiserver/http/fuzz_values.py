"""Bad values: documents with one value replaced by an invalid or extreme one."""

from __future__ import annotations

from typing import Any

from mooring.kit.entropy import Entropy

Path = tuple[str | int, ...]

TEXTS: tuple[str, ...] = (
    "",
    " ",
    "\x00",
    "a\x00b",
    "\n",
    "\u2028\ufeff",
    "é" * 40,
    "🦀",
    "-",
    ".",
    "..",
    "../../etc/passwd",
    "/",
    "a/b",
    "a/b/c",
    "%2F",
    "%00",
    "null",
    "true",
    "0",
    "-1",
    "1e9",
    "NaN",
    "Infinity",
    "9" * 30,
    "x" * 64,
    "x" * 254,
    "a." * 140,
    "UPPER",
    "with space",
    "with_underscore",
    "1Gi",
    "-1Gi",
    "1.5m",
    "1E400",
    "0.0000000000000000001",
    "1ki",
    "12e+8E",
    "50%",
    "-50%",
    "2026-01-01T00:00:00Z",
    "2026-13-45T99:99:99Z",
    "9999-12-31T23:59:59.999999999Z",
    "0000-00-00T00:00:00Z",
    "1h",
    "-1h2m",
    "10.0.0.1",
    "256.0.0.1",
    "::1",
    "fe80::1%eth0",
    "10.0.0.0/33",
    "TCP",
    "kubernetes.io/hostname",
    "$(VAR)",
    "{{.}}",
    "$patch",
    "'; DROP TABLE",
    "*",
    "**",
    "(",
    "[",
    "^(a+)+$",
    "default",
    "kube-system",
    "Exists",
    "In",
    "Always",
)

NUMBERS: tuple[int | float, ...] = (
    *(0, 1, -1, 2, 7, 100, 101, 443, 65_535, 65_536, 1_000_000),
    *(2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**40),
    *(0.5, -0.0, 1e300, 1.5e-300),
)

KEYS: tuple[str, ...] = (
    *("name", "Name", "metadata", "spec", "status", "kind", "apiVersion", "labels", "annotations", "finalizers"),
    *("$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers", "managedFields"),
    *("ownerReferences", "selector", "matchLabels", "template", "containers", "resources", "deletionTimestamp"),
    *("generateName", "uid", "resourceVersion", "creationTimestamp", "f:metadata", "k:{}", ".", "", "a\x00", "x" * 300),
)

NESTING_DEPTH = 600


def bad_value(entropy: Entropy) -> Any:
    """A random value of any type."""
    match entropy.integer_below(10):
        case 0 | 1 | 2:
            return entropy.choose(TEXTS)
        case 3 | 4:
            return entropy.choose(NUMBERS)
        case 5:
            return entropy.choose((None, True, False))
        case 6:
            return entropy.choose(([], {}, [[]], [{}], [None], {"": None}, [""], [0], {"a": {}}))
        case 7:
            return [bad_value(entropy) for _ in range(entropy.integer_below(4))]
        case 8:
            return {entropy.choose(KEYS): bad_value(entropy) for _ in range(entropy.integer_below(4))}
        case _:
            return _huge(entropy)


def spoiled(document: Any, entropy: Entropy, other: Any) -> Any:
    """Change a document in one place, in place where possible; `other` is a document to take parts from."""
    paths = _paths(document)
    if not paths:
        return bad_value(entropy)
    path = entropy.choose(paths)
    holder, key = _holder(document, path)
    match entropy.integer_below(12):
        case 0 | 1 | 2:
            holder[key] = bad_value(entropy)
        case 3 | 4:
            del holder[key]
        case 5:
            holder[key] = None
        case 6 if isinstance(holder, dict):
            holder[entropy.choose(KEYS)] = bad_value(entropy)
        case 7 if isinstance(key, int):
            holder.append(holder[key])
        case 8 if isinstance(holder, dict):
            holder[str(key).swapcase()] = holder.pop(key)
        case 9:
            holder[key] = [holder[key]]
        case 10:
            holder[key] = {entropy.choose(KEYS): holder[key]}
        case _:
            others = _paths(other)
            if others:
                from_holder, from_key = _holder(other, entropy.choose(others))
                holder[key] = from_holder[from_key]
    return document


def _huge(entropy: Entropy) -> Any:
    match entropy.integer_below(5):
        case 0:
            return "x" * 5_000
        case 1:
            return [entropy.choose(NUMBERS)] * 300
        case 2:
            return {f"key-{number}": "v" for number in range(200)}
        case 3:
            return _nested(NESTING_DEPTH, is_list=True)
        case _:
            return _nested(NESTING_DEPTH, is_list=False)


def _nested(depth: int, *, is_list: bool) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if is_list else {"a": value}
    return value


def _paths(document: Any) -> list[Path]:
    found: list[Path] = []
    waiting: list[tuple[Path, Any]] = [((), document)]
    while waiting:
        path, value = waiting.pop()
        # Deeper levels contain only values of earlier changes.
        if len(path) > 12:
            continue
        pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in pairs:
            found.append((*path, key))
            waiting.append(((*path, key), item))
    return found


def _holder(document: Any, path: Path) -> tuple[Any, str | int]:
    for key in path[:-1]:
        document = document[key]
    return document, path[-1]
