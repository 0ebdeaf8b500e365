from __future__ import annotations

import json

import pytest

from mooring.cli.manifests.origins import JsonOrigin, TextOrigin

TEXT = """# a comment
kind: List
items:
- kind: Pod
  metadata:
    name: a
    labels:
      example.com/tier: web
- kind: Pod
  metadata: {name: b}
"""


@pytest.mark.parametrize(
    ("origin", "path", "where"),
    [
        pytest.param(TextOrigin("f", TEXT), "", "f:2", id="the document"),
        pytest.param(TextOrigin("f", TEXT), "items", "f:3", id="a field"),
        pytest.param(TextOrigin("f", TEXT).item(0), "", "f:4", id="an item"),
        pytest.param(TextOrigin("f", TEXT).item(1), "metadata.name", "f:10", id="a field of an item"),
        pytest.param(TextOrigin("f", TEXT).item(0), 'metadata.labels["example.com/tier"]', "f:8", id="a key with dots"),
        pytest.param(TextOrigin("f", TEXT).item(0), "spec.priority", "f:4", id="a field that is not there"),
        pytest.param(TextOrigin("f", TEXT, 100).item(0), "metadata.name", "f:106", id="a chunk of a longer file"),
        pytest.param(TextOrigin("f", f"a: 1\n---\n{TEXT}", 0, 1), "kind", "f:4", id="the second document"),
    ],
)
def test_lines_of_text(origin: TextOrigin, path: str, where: str) -> None:
    assert origin.at(path) == where


def test_lines_of_json_are_those_of_the_whole_file() -> None:
    items = [{"metadata": {"name": name}, "spec": {"priority": 1}} for name in ("a", "b")]
    text = json.dumps({"items": items}, indent=1).encode()
    start = text.index(b'"b"')
    raw = text[
        text.rindex(b"  {\n", 0, text.rindex(b'"metadata"', 0, start)) + 2 : text.rindex(b"}", 0, len(text) - 3) + 1
    ]
    assert json.loads(raw) == items[1]
    origin = JsonOrigin("f", text, raw)
    lines = text.decode().split("\n")
    assert '"priority"' in lines[int(origin.at("spec.priority").removeprefix("f:")) - 1]
    assert int(origin.at("spec.priority").removeprefix("f:")) > len(lines) / 2


def test_json_that_yaml_refuses_still_has_a_line() -> None:
    source = b'[\n{"a": 1, "a": 2}]'
    assert JsonOrigin("f", source, source[2:-1]).at("a") == "f:2"
