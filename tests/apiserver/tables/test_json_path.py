from __future__ import annotations

import pytest

from mooring.apiserver.tables.json_path import JsonPath, JsonPathError

OBJ = {
    "spec": {
        "text": "t",
        "list": ["x", 2, "z"],
        "map": {"a.b": "dotted", "c": "plain"},
        "conditions": [
            {"type": "Ready", "status": "True", "n": 1, "flag": True},
            {"type": "Other", "status": "False", "n": 2, "x": 1},
        ],
        "n": {"deep": "down"},
    }
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.text", ["t"]),
        (".spec['text']", ["t"]),
        (".spec.map.a\\.b", ["dotted"]),
        (".spec.map['c']", ["plain"]),
        (".spec.map.*", ["dotted", "plain"]),
        (".spec.none", []),
        (".spec.text.deeper", []),
        (".", []),
        (".spec.list[0]", ["x"]),
        (".spec.list[-1]", ["z"]),
        (".spec.list[1:2]", [2]),
        (".spec.list[-2:]", [2, "z"]),
        (".spec.list[::2]", ["x", "z"]),
        (".spec.list[*]", ["x", 2, "z"]),
        (".spec.list[0,2]", ["x", "z"]),
        ("..deep", ["down"]),
        ('.spec.conditions[?(@.type=="Ready")].status', ["True"]),
        (".spec.conditions[?(@.type=='Ready')].status", ["True"]),
        ('.spec.conditions[?(@.type != "Ready")].status', ["False"]),
        ('.spec.conditions[?(@.type=="None")].status', []),
        (".spec.conditions[?(@.n>1)].type", ["Other"]),
        (".spec.conditions[?(@.n>=1)].type", ["Ready", "Other"]),
        (".spec.conditions[?(@.n<=1)].type", ["Ready"]),
        (".spec.conditions[?(@.n<2)].type", ["Ready"]),
        (".spec.conditions[?(@.x)].type", ["Other"]),
        (".spec.conditions[?(@.flag==true)].type", ["Ready"]),
    ],
)
def test_where_a_path_leads(path: str, found: list[object]) -> None:
    assert JsonPath(path).find(OBJ) == found


@pytest.mark.parametrize(
    "path", [".spec.list[", ".spec.list[x]", ".a[?(@.b", ".a[?(@.b)", '.a["', "....a", ".a[1:2:-1]", ".a|b[|]", ".a |"]
)
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(JsonPathError):
        JsonPath(path)


@pytest.mark.parametrize(
    "path",
    [
        ".spec.list[5]",
        ".spec.text[0]",
        ".spec.text[?(@.a)]",
        ".spec['no name']",
        ".spec.conditions[?(@.type>1)].n",
        ".spec.conditions[?(@.*==1)].n",
    ],
)
def test_paths_that_cannot_be_followed(path: str) -> None:
    with pytest.raises(JsonPathError):
        JsonPath(path).find(OBJ)
