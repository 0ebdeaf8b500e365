from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.yaml import load_documents
from mooring.cli.manifests import yaml_chunks
from mooring.cli.manifests.yaml_chunks import Chunk, JsonOrigin, TextOrigin, documents_of, split_list

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
    ("text", "expected"),
    [
        pytest.param("a: 1\n", [("a: 1\n", 0)], id="one document"),
        pytest.param("a: 1\n---\nb: 2\n", [("a: 1\n", 0), ("---\nb: 2\n", 1)], id="two"),
        pytest.param("---\na: 1\n---\nb: 2", [("---\na: 1\n", 0), ("---\nb: 2", 2)], id="a marker before each"),
        pytest.param("\n\n---\na: 1\n", [("---\na: 1\n", 2)], id="blank lines first"),
        pytest.param("a: |\n  ---\n  b\n", [("a: |\n  ---\n  b\n", 0)], id="a marker inside of a text"),
        pytest.param("a: 1\n----\n", [("a: 1\n----\n", 0)], id="four dashes are no marker"),
        pytest.param("%YAML 1.1\n---\na: 1\n---\nb: 2\n", [("%YAML 1.1\n---\na: 1\n---\nb: 2\n", 0)], id="a directive"),
        pytest.param("", [("", 0)], id="nothing"),
    ],
)
def test_a_text_is_cut_at_its_documents(text: str, expected: list[tuple[str, int]]) -> None:
    assert documents_of(text) == [Chunk(*each) for each in expected]


@pytest.fixture
def _everything_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_chunks, "CUT_FROM", 0)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("apiVersion: v1\nitems:\n- a: 1\n  b:\n  - x\n- a: 2\nkind: List\n", id="as kubectl prints it"),
        pytest.param("kind: List\nitems:\n  - a: 1\n    b:\n      - x\n  - a: 2\n", id="indented"),
        pytest.param("kind: List\nitems: # these\n\n# first\n- a: 1\n# second\n- a: 2\n", id="with comments"),
        pytest.param(
            "kind: List\nitems:\n- a: |\n    - not an item\n    items:\n- a: 2\n", id="a list inside of a text"
        ),
    ],
)
@pytest.mark.usefixtures("_everything_is_long")
def test_a_list_is_cut_at_its_items(text: str) -> None:
    cut = split_list(Chunk(text, 10))
    assert cut is not None
    whole = load_documents(text)[0].data
    assert isinstance(whole, dict)
    assert [load_documents(item.text)[0].data for item in cut.items] == [[item] for item in whole["items"]]
    assert load_documents(cut.head)[0].data == {key: value for key, value in whole.items() if key != "items"}
    for item in cut.items:
        line = text.split("\n")[item.lines_before - 10]
        assert line.lstrip().startswith("- "), "the lines before an item are counted right"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("kind: Pod\n", id="no list"),
        pytest.param("kind: List\nitems: []\n", id="an empty one"),
        pytest.param("kind: List\nitems: [{a: 1}]\n", id="in flow style"),
        pytest.param('{"kind": "List", "items": []}', id="JSON"),
    ],
)
@pytest.mark.usefixtures("_everything_is_long")
def test_other_things_are_not_cut(text: str) -> None:
    assert split_list(Chunk(text, 0)) is None


def test_a_short_list_is_not_cut() -> None:
    assert split_list(Chunk("kind: List\nitems:\n- a: 1\n", 0)) is None


@given(st.lists(st.sampled_from(["a: 1\n", "---\n", "b:\n- x\n", "\n", "# c\n", "--- # d\n"])))
def test_documents_put_together_are_the_text_but_for_blank_beginnings(lines: list[str]) -> None:
    text = "".join(lines)
    pieces = documents_of(text)
    assert "".join(piece.text for piece in pieces).strip() == text.strip()
    for piece in pieces:
        assert text.split("\n")[piece.lines_before :][:1] == piece.text.split("\n")[:1]


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
