"""No module of the write path makes a decision by searching the text of received or stored JSON.

A regular expression or a search for a piece of JSON cannot know which fields a validation rule or an admission plugin
reads. Objects are decoded instead. Exceptions are listed with their reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from mooring import apiserver

APISERVER = Path(apiserver.__file__).parent
PACKAGES = ("registry", "wire", "storage", "kinds", "admission", "apply", "http")
MODULES = sorted(
    [
        *APISERVER.glob("*.py"),
        *(path for package in PACKAGES for path in (APISERVER / package).rglob("*.py")),
    ]
)

REGULAR_EXPRESSIONS = {
    "admission/pod_security.py": "the version in a namespace label",
    "discovery.py": "the maturity in the name of an API version",
    "http/rendering.py": "the text of a warning header",
    "kinds/pod/defaults.py": "the tag of one image",
    "registry/reading.py": "field selectors and continue tokens, which are query parameters",
    "storage/selection.py": "the terms of a field selector, which is a query parameter",
    "kinds/cron_job.py": "the format of a decoded time zone",
    "kinds/custom_resource_definition/rules.py": "a line end in one decoded message",
    "kinds/devices.py": "the format of decoded names",
    "kinds/job/policies.py": "the format of decoded index lists",
    "kinds/job/spec.py": "the format of a decoded path",
    "kinds/node.py": "the format of a decoded feature name",
    "kinds/pod/security.py": "the format of decoded Windows names",
    "kinds/resource_slice.py": "the format of a decoded version",
    "kinds/secret.py": "the value of one decoded field",
    "kinds/volume_sources.py": "the format of decoded iSCSI names",
    "wire/json_text.py": "the JSON scanner, which reports the position of a syntax error; escape sequences of a string",
}
PIECES_OF_JSON = {
    "http/watches.py": "writes the frame of a watch event",
    "http/rendering.py": "writes the frame of a list",
    "storage/stored_form.py": "inserts the resourceVersion into a stored object",
    "storage/storage.py": "writes a bookmark",
}


def name_of(path: Path) -> str:
    return path.relative_to(APISERVER).as_posix()


def imports_re(tree: ast.AST) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(alias.name in ("re", "regex", "re2") for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and node.module in ("re", "regex", "re2"):
            return True
    return False


def pieces_of_json(tree: ast.AST) -> Iterator[bytes]:
    """Bytes that look like a piece of an object: a quote next to a colon, a comma or a brace."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, bytes):
            squeezed = node.value.replace(b" ", b"")
            if any(piece in squeezed for piece in (b'":', b'{"', b',"', b'"}', b'",')):
                yield node.value


@pytest.mark.parametrize("path", [pytest.param(path, id=name_of(path)) for path in MODULES])
def test_no_module_searches_the_text_of_json(path: Path) -> None:
    tree, name = ast.parse(path.read_text(encoding="utf-8")), name_of(path)
    if name not in REGULAR_EXPRESSIONS:
        assert not imports_re(tree), f"{name} uses regular expressions: decode the object instead, or add a reason here"
    if name not in PIECES_OF_JSON:
        found = [*pieces_of_json(tree)]
        assert not found, f"{name} handles pieces of JSON {found}: decode the object instead, or add a reason here"


def test_every_exception_is_needed() -> None:
    trees = {name_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
    assert [name for name in REGULAR_EXPRESSIONS if not imports_re(trees[name])] == []
    assert [name for name in PIECES_OF_JSON if not [*pieces_of_json(trees[name])]] == []


def test_the_checks_find_examples() -> None:
    assert imports_re(ast.parse("import re"))
    assert imports_re(ast.parse("from re import compile"))
    assert [*pieces_of_json(ast.parse("""value.find(b'"spec":{')"""))] == [b'"spec":{']
    assert not [*pieces_of_json(ast.parse("data.rstrip(b' ')"))]
