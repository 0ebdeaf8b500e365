"""Objects from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.api.errors import ObjectError
from mooring.api.load import load, load_object

NODE = "{apiVersion: v1, kind: Node, metadata: {name: n1}}"
POD = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: d}}"
MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}"
CUSTOM = "{apiVersion: example.com/v1, kind: Boat, metadata: {name: b}}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"{NODE}\n---\n---\n{POD}\n", ["Node n1", "Pod p"], id="documents, one of them empty"),
        pytest.param(
            f"{{apiVersion: v1, kind: List, items: [{POD}, {MAP}, {NODE}]}}", ["Pod p", "Node n1"], id="a list"
        ),
        pytest.param(
            "{apiVersion: v1, kind: PodList, items: [{metadata: {name: p}}]}", ["Pod p"], id="a list of one kind"
        ),
        pytest.param(f"{MAP}\n---\n{CUSTOM}\n", [], id="kinds that nothing decides by"),
        pytest.param('{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}', ["Node n1"], id="JSON"),
    ],
)
def test_objects_of_a_file(text: str, expected: list[str], tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    file.write_text(text, encoding="utf-8")
    assert [f"{type(view).__name__} {view.metadata.name}" for view in load(file)] == expected


def test_a_folder_is_loaded_file_by_file(tmp_path: Path) -> None:
    (tmp_path / "2.yaml").write_text(NODE, encoding="utf-8")
    (tmp_path / "1.yml").write_text(POD, encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no: [YAML", encoding="utf-8")
    (tmp_path / "below").mkdir()
    assert [view.metadata.name for view in load(tmp_path)] == ["p", "n1"]
    assert [view.metadata.name for view in load(str(tmp_path / "2.yaml"), tmp_path / "1.yml")] == ["n1", "p"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [", r"objects\.yaml", id="no YAML"),
        pytest.param("- 1\n", r"objects\.yaml:1: expected an object, found list", id="no object"),
        pytest.param(
            "\n{apiVersion: v1, kind: Pod, spec: {priority: high}}",
            r"objects\.yaml:2: .*spec\.priority: expected an integer",
            id="a wrong field",
        ),
        pytest.param("{apiVersion: v1, metadata: {name: x}}", r"expected the object's kind", id="no kind"),
    ],
)
def test_errors_name_the_file(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ObjectError, match=message):
        load(file)


def test_one_object_as_text() -> None:
    assert load_object("kind: Pod")["kind"] == "Pod"
    with pytest.raises(ObjectError, match="expected one object, found 2"):
        load_object("kind: Pod\n---\nkind: Pod")
