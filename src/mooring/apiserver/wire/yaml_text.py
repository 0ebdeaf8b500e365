"""YAML bodies and responses.

Input: the bytes of a YAML body; a document. Output: the data of its first document with sorted keys, and strict
errors for repeated keys; or `BodySyntaxError`. The YAML of a document.

1. Go converts YAML to JSON first, which sorts the keys of every mapping. Errors are in that order.
2. Of several documents only the first counts. An empty body is null.
3. A repeated key is a strict error with its line: the last value counts.
4. Written YAML has no aliases. A string that would be read as something else (a number, a time, `yes`) is in double
   quotes; a string of several lines is a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.yaml import MERGE_KEY, NESTING_MAX, YamlDocument, YamlError, as_key, load_documents, resolve_scalar
from mooring.apiserver.wire.examine import YAML_ERRORS
from mooring.apiserver.wire.json_text import BodySyntaxError

_ALREADY_SET = "already set in map"


def parse_yaml(data: bytes) -> tuple[object, list[str]]:
    """The data of a YAML body, and its strict errors: one, with all repeated keys in it. Raises `BodySyntaxError`."""
    if b"\\ud" in data or b"\\uD" in data:
        _check_escapes(data)
    try:
        return sorted_keys(_first(load_documents(data, "body"))), []
    except YamlError as error:
        if _ALREADY_SET not in error.text:
            raise BodySyntaxError(_message(error)) from error
    value, repeated = _last_wins(data)
    lines = [f"  line {line}: key {key} {_ALREADY_SET}" for line, key in repeated]
    return sorted_keys(value), ["\n".join([YAML_ERRORS, *lines])]


def sorted_keys(value: Any) -> Any:
    """The same data, with the keys of every object in order."""
    if isinstance(value, dict):
        return {key: sorted_keys(item) for key, item in sorted(value.items())}
    return [sorted_keys(item) for item in value] if isinstance(value, list) else value


def _first(documents: list[YamlDocument]) -> object:
    return documents[0].data if documents else None


def _message(error: YamlError) -> str:
    """The error of libyaml as Go's port reports it: lines count from zero, except in errors of the scanner."""
    return _cause_message(error.__cause__, error.text)


def _cause_message(cause: BaseException | None, otherwise: str) -> str:
    if isinstance(cause, yaml.reader.ReaderError):
        return f"yaml: {cause.reason}"
    return _marked_message(cause) if isinstance(cause, yaml.MarkedYAMLError) else f"yaml: {otherwise}"


def _marked_message(cause: yaml.MarkedYAMLError) -> str:
    line = 0
    for mark in (cause.context_mark, cause.problem_mark):
        if mark is not None and mark.line:
            line = mark.line + isinstance(cause, yaml.scanner.ScannerError)
            break
    where = f"line {line}: " if line else ""
    return f"yaml: {where}{cause.problem or 'unknown problem parsing YAML content'}"


def _check_escapes(data: bytes) -> None:
    """Halves of surrogate pairs may be escaped in JSON, but not in YAML; our reader reads JSON as JSON."""
    try:
        for _ in yaml.parse(data, Loader=yaml.CSafeLoader):
            pass
    except yaml.YAMLError as error:
        raise BodySyntaxError(_cause_message(error, str(error))) from error


# A second loader, because ours rejects repeated keys, as it should for manifests. The nesting is checked first, so that
# a body of a hundred thousand brackets does no harm.


def _last_wins(data: bytes) -> tuple[object, list[tuple[int, str]]]:
    loader = _TextKeys(data)
    try:
        _check_shape(data)
        node = loader.get_node() if loader.check_node() else None
        return _text_keys(loader.construct_document(node)), list(_repeated_keys(node))
    except (yaml.YAMLError, ValueError) as error:
        raise BodySyntaxError(f"yaml: {error}") from error
    finally:
        loader.dispose()


def _check_shape(data: bytes) -> None:
    """Rejects input that is too deep or too large for a plain loader, which recurses in C without limits."""
    depth = 0
    for event in yaml.parse(data, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > NESTING_MAX:
                raise BodySyntaxError(f"yaml: nested deeper than {NESTING_MAX} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.AliasEvent):
            raise BodySyntaxError("yaml: keys are set twice in a document with aliases")


def _text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {as_key(key): _text_keys(item) for key, item in value.items()}
    return [_text_keys(item) for item in value] if isinstance(value, list) else value


def _repeated_keys(node: yaml.Node | None) -> Iterator[tuple[int, str]]:
    """Lines and keys, those of inner mappings first."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated_keys(item)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            yield from _repeated_keys(value)
            if key.value in seen:
                is_text = isinstance(_scalar_value(key), str)
                yield value.start_mark.line + 1, quoted(key.value) if is_text else key.value
            seen.add(key.value)


_TEXT = "tag:yaml.org,2002:str"
_MERGE = "tag:yaml.org,2002:merge"
_PLAIN = "!plain"


class _TextKeys(yaml.CSafeLoader):
    """Scalars mean what they mean in `api.yaml`. PyYAML's own constructors read them otherwise, and fail on a text that
    contradicts its tag (`!!int x`) with whatever exception it leads to."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """The tag of a node that has none."""
        if kind is not yaml.ScalarNode:
            return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
        if not implicit[0]:
            return _TEXT
        return _MERGE if value == MERGE_KEY else _PLAIN


def _constructed(loader: _TextKeys, node: yaml.Node) -> object:
    match node:
        case yaml.MappingNode():
            return loader.construct_mapping(node, deep=True)
        case yaml.SequenceNode():
            return loader.construct_sequence(node, deep=True)
        case _:
            return _scalar_value(node)


def _scalar_value(node: yaml.Node) -> object:
    """Raises `ValueError`."""
    if not isinstance(node, yaml.ScalarNode):
        raise ValueError("invalid map key: expected text, found a mapping or a list")
    return resolve_scalar(node.value, node.tag, is_plain=node.tag in (_PLAIN, _MERGE))


_TextKeys.yaml_constructors = {None: _constructed}


def written_yaml(document: Document) -> bytes:
    """The YAML of a document."""
    return yaml.dump(document, Dumper=_Dumper, allow_unicode=True).encode()


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


def _represented(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None if _is_text(dumper, text) else '"'
    return dumper.represent_scalar(_TEXT, text, style)


def _is_text(dumper: _Dumper, text: str) -> bool:
    """Whether a text needs no quotes, by the rules of YAML and of Go's parsers."""
    tag = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return tag == _TEXT and isinstance(resolve_scalar(text, None, is_plain=True), str)


_Dumper.add_representer(str, _represented)
