"""Manifests become checked objects, or errors that name file, line and field."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from mooring.api.decode import convert
from mooring.api.kinds import kind_of_view
from mooring.api.views.workloads import Job
from mooring.cli.errors import InputError
from mooring.cli.manifests import read as manifests
from mooring.cli.manifests import yaml_chunks
from mooring.cli.manifests.checks import problems_of
from mooring.cli.manifests.kinds import advice_for, is_skipped
from mooring.cli.manifests.read import Manifests, Source, find_sources, read_manifests, read_objects
from mooring.scheduler.event_handlers import WATCHED

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"


def read(text: str | bytes) -> Manifests:
    content = text.encode() if isinstance(text, str) else text
    return read_manifests([Source("f", None)], io.BytesIO(content), lambda amount: None)


def keys(manifests: Manifests) -> list[str]:
    return [f"{found.view.kind} {found.view.key}" for found in manifests.objects]


def complaints(text: str | bytes) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(text)
    return caught.value.lines()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(POD, ["Pod p"], id="one object"),
        pytest.param(f"{POD}---\n{POD.replace('p}', 'q}')}", ["Pod p", "Pod q"], id="two documents"),
        pytest.param(f"---\n# nothing\n---\n{POD}---\n", ["Pod p"], id="documents without content"),
        pytest.param("kind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: p}}", ["Pod p"], id="a list"),
        pytest.param("{apiVersion: v1, kind: PodList, items: [{metadata: {name: p}}]}", ["Pod p"], id="a list of pods"),
        pytest.param(
            '{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "p"}}]}', ["Pod p"], id="in JSON"
        ),
        pytest.param('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}', ["Pod p"], id="one in JSON"),
        pytest.param(
            '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}\n'
            '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q"}}',
            ["Pod p", "Pod q"],
            id="JSON lines",
        ),
        pytest.param(
            '{"kind": "List", "items": [{"kind": "List", "items": '
            '[{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}]}]}',
            ["Pod p"],
            id="a list in a list",
        ),
        pytest.param("\ufeff" + POD, ["Pod p"], id="with a byte order mark"),
        pytest.param("kind: List\napiVersion: v1\nitems: []", [], id="an empty list"),
        pytest.param("kind: PodList\napiVersion: v1\nitems: null", [], id="a list of null"),
        pytest.param('{"kind": "List", "items": []}', [], id="an empty list in JSON"),
        pytest.param(POD.replace("p}", "p, labels: null}"), ["Pod p"], id="null is absent"),
    ],
)
def test_forms(text: str, found: list[str]) -> None:
    assert keys(read(text)) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "f: found nothing in it; wanted Kubernetes objects", id="nothing"),
        pytest.param("# only this\n", "f: found nothing in it", id="a comment"),
        pytest.param("hello", 'f:1: found the text "hello"; wanted a Kubernetes object', id="a word"),
        pytest.param("\n- a\n", "f:2: found a list; wanted a Kubernetes object", id="a list of nothing we know"),
        pytest.param("a: [", "f:1: cannot be read as YAML or JSON: ", id="not YAML"),
        pytest.param(f"{POD}---\n{POD}  x: y\n", "f:8: cannot be read as YAML", id="not YAML in the second document"),
        pytest.param(
            f"{POD}kind: Node\n", 'f:4: cannot be read as YAML or JSON: key "kind" already set', id="a key twice"
        ),
        pytest.param('{"a": 1,\n "b" 2}', "f:2: cannot be read as YAML or JSON: ", id="not JSON"),
        pytest.param(b"a: \xff\n", "f:1: found bytes that are not UTF-8", id="not text"),
        pytest.param(b'{"kind": "\xff"}', "f:1: found bytes that are not UTF-8", id="JSON that is not text"),
        pytest.param("metadata: {name: p}", "f:1: found an object without kind", id="no kind"),
        pytest.param('{"metadata": {"name": "p"}}', "f:1: found an object without kind", id="no kind in JSON"),
        pytest.param("kind: 3", "f:1: kind: found 3; wanted text such as Pod or Node", id="a number for a kind"),
        pytest.param("kind: Pod", "f:1: found Pod without apiVersion; wanted v1", id="no version"),
        pytest.param(
            "kind: PodList\nitems: 3", "f:2: items: found 3; wanted a list of objects", id="items are no list"
        ),
        pytest.param("kind: List\nitems:\n- 3", "f:3: found 3; wanted a Kubernetes object", id="an item is a number"),
        pytest.param('{"kind": "List", "items": [\n3]}', "f:2: found 3; wanted a Kubernetes object", id="in JSON too"),
        pytest.param(
            '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a\\u001b[2Jb"}}',
            "f:1: Pod: metadata.name: found 'a\\x1b[2Jb', which contains a control character",
            id="a name that clears the screen",
        ),
        pytest.param("apiVersion: v1\nkind: Nonsense", 'f:2: no kind "Nonsense" is registered', id="an unknown kind"),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  priority: high",
            'f:6: Pod "p": spec.priority: expected an integer, found "high"',
            id="a wrong type",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  labels:\n    ssd: yes",
            'f:6: Node "n1": metadata.labels["ssd"]: expected a string, found true; put it in quotes',
            id="a label that YAML takes for something else",
        ),
        pytest.param(
            '{"kind": "List", "items": [\n{"apiVersion": "v1", "kind": "Node",\n"metadata": {"name": "n"},\n'
            '"status": {"allocatable": {\n"cpu": "x"}}}]}',
            'f:5: Node "n": status.allocatable.cpu: "x" is not a quantity',
            id="a broken quantity in JSON",
        ),
    ],
)
def test_complaints_name_the_place_and_the_trouble(text: str | bytes, said: str) -> None:
    lines = complaints(text)
    assert (len(lines), lines[0][: len(said)]) == (1, said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"apiVersion": "v1", "kind": "List", "items": [null]}', "f:1: found null; wanted a Kubernetes object"),
        (
            '{"kind": "List", "items": ' + "[" * 20_000 + "]" * 20_000 + "}",
            "f:1: cannot be read as YAML or JSON: nested",
        ),
    ],
)
def test_hostile_lists_are_complaints(text: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        read(text)
    assert said in str(raised.value)


def test_all_complaints_are_made_at_once() -> None:
    lines = complaints("kind: List\nitems:\n- 1\n- {kind: Pod}\n- {apiVersion: v1, kind: Poddd}\n")
    assert [line.partition(": ")[0] for line in lines] == ["f:3", "f:4", "f:5"]


def test_what_is_skipped_is_counted() -> None:
    manifests = read(
        "kind: List\nitems:\n" + "- {apiVersion: v1, kind: Secret}\n" * 3 + "- {apiVersion: a.b/v1, kind: C}\n"
    )
    assert (manifests.skipped, keys(manifests)) == ({"Secret": 3, "C": 1}, [])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{apiVersion: v1, kind: LimitRange, metadata: {name: l}}", id="YAML"),
        pytest.param(
            '{"apiVersion": "v1", "kind": "LimitRangeList", "items": [{"metadata": {"name": "l"}}]}', id="JSON"
        ),
        pytest.param("apiVersion: v1\nkind: LimitRangeList\nitems:\n- metadata: {name: l}\n", id="a list in YAML"),
    ],
)
def test_objects_that_only_admission_reads(text: str) -> None:
    manifests = read(text)
    wanted = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}}
    assert [policy.document for policy in manifests.policies] == [wanted]
    assert (manifests.objects, manifests.skipped, manifests.kinds) == ([], {}, {"LimitRange"})


def test_only_objects_without_a_uid_keep_their_body() -> None:
    items = "- metadata: {name: a}\n- metadata: {name: b, uid: u}\n"
    written, stored = read(f"apiVersion: v1\nkind: PodList\nitems:\n{items}").objects
    assert written.body is not None
    assert stored.body is None


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        pytest.param("{apiVersion: v1, kind: Node, metadata: {name: n1}}", {"Node"}, id="an object"),
        pytest.param("{apiVersion: v1, kind: Secret}", {"Secret"}, id="a skipped object"),
        pytest.param("{apiVersion: v1, kind: PodList, items: []}", {"Pod"}, id="an empty typed list"),
        pytest.param('{"apiVersion": "v1", "kind": "PodList", "items": []}', {"Pod"}, id="the same in JSON"),
        pytest.param("{apiVersion: v1, kind: List, items: []}", set(), id="an empty list of anything"),
    ],
)
def test_the_kinds_that_files_hold(text: str, kinds: set[str]) -> None:
    assert read(text).kinds == kinds


def test_a_workload_is_read_with_its_template() -> None:
    (found,) = read("{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {}}}}").objects
    assert isinstance(found.view, Job)
    assert b'"template"' in found.view.raw


# Long lists


def dump(count: int, extra: str = "") -> str:
    items = "".join(
        f"- apiVersion: v1\n  kind: Node\n  metadata:\n    name: n{number}\n    annotations:\n      text: |\n"
        f"        - not an item\n        {'x' * 200}\n  status:\n    allocatable:\n      cpu: 4{extra}\n"
        for number in range(count)
    )
    return f"apiVersion: v1\nitems:\n{items}kind: List\nmetadata:\n  resourceVersion: ''\n"


def test_a_long_list_is_read_in_pieces_and_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = dump(40)
    steps: list[int] = []
    whole = read_manifests([Source("f", None)], io.BytesIO(text.encode()), steps.append)
    monkeypatch.setattr(yaml_chunks, "CUT_FROM", 0)
    steps_cut: list[int] = []
    cut = read_manifests([Source("f", None)], io.BytesIO(text.encode()), steps_cut.append)
    assert [found.view for found in cut.objects] == [found.view for found in whole.objects]
    assert [found.origin.at("metadata.name") for found in cut.objects] == [
        found.origin.at("metadata.name") for found in whole.objects
    ]
    assert (len(steps), len(steps_cut)) == (1, 40)


def test_complaints_about_a_long_list_name_the_line_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_chunks, "CUT_FROM", 0)
    text = dump(3).replace("name: n2", "name: 2")
    line = text.split("\n").index("    name: 2") + 1
    assert complaints(text) == [
        f'f:{line}: Node "2": metadata.name: expected a string, found 2; put it in quotes',
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            dump(2).replace("text: |", "text: &a |").replace("cpu: 4", "cpu: 4\n      pods: *a", 0), id="anchors"
        ),
        pytest.param(
            "kind: List\nitems:\n- &a {apiVersion: v1, kind: Node, metadata: {name: n1}}\n- *a\n", id="an alias"
        ),
        pytest.param("kind: Service\napiVersion: v1\nmetadata: {name: s}\nitems:\n- 1\n", id="a list in name only"),
        pytest.param('kind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: "a\n- b"}}\n', id="a text"),
    ],
)
def test_a_list_that_cannot_be_cut_is_read_whole(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(text)
    monkeypatch.setattr(yaml_chunks, "CUT_FROM", 0)
    cut = read(text)
    assert [found.view for found in cut.objects] == [found.view for found in whole.objects]
    assert (cut.skipped, cut.kinds) == (whole.skipped, whole.kinds)


def test_five_thousand_nodes_as_json_are_not_read_as_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader of YAML would take minutes."""
    node: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "status": {
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "images": [{"names": [f"registry.example/{n}@sha256:{'0' * 64}"], "sizeBytes": 1} for n in range(30)],
        },
    }
    items = [{**node, "metadata": {"name": f"n{n}", "labels": {"zone": f"z{n % 3}"}}} for n in range(5000)]
    content = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=4).encode()
    monkeypatch.delattr(manifests, "load_documents")
    assert len(read(content).objects) == 5000


# Files


def test_folders_are_unfolded_in_order(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.json", "sub/c.yml", "d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [Path(source.name).name for source in find_sources([str(tmp_path)])] == ["a.json", "b.yaml", "c.yml"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        pytest.param(
            ["nowhere.yaml"], "nowhere.yaml: no such file or folder; check the path given to -f", id="missing"
        ),
        pytest.param(["-", "-"], "-f - was given twice, but standard input can be read once", id="input twice"),
    ],
)
def test_sources_that_are_not_there(names: list[str], said: str) -> None:
    with pytest.raises(InputError) as caught:
        find_sources(names)
    assert caught.value.lines() == [said]


def test_an_empty_folder_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no manifests; wanted files"):
        find_sources([str(tmp_path)])


def test_a_file_that_cannot_be_read_is_reported_with_the_reason(tmp_path: Path) -> None:
    gone = Source("gone.yaml", tmp_path / "gone.yaml")
    with pytest.raises(InputError, match=r"gone.yaml: cannot be read: No such file or directory"):
        read_manifests([gone], io.BytesIO(), lambda amount: None)


# --- whole objects ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("{apiVersion: a/v1, kind: Boat, metadata: {name: x}}", [("Boat", "x", "f:1")], id="any kind"),
        pytest.param(
            "apiVersion: v1\nkind: A\nmetadata: {name: x}\n---\napiVersion: v1\nkind: B\nmetadata: {name: z}\n",
            [("A", "x", "f:1"), ("B", "z", "f:5")],
            id="two documents",
        ),
        pytest.param(
            '{"apiVersion": "v1", "kind": "PodList",\n "items": [{"metadata": {"name": "x"}}]}',
            [("Pod", "x", "f:2")],
            id="a typed list as JSON",
        ),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: x}}\n",
            [("A", "x", "f:4")],
            id="a list as YAML",
        ),
    ],
)
def test_whole_objects(text: str, found: list[tuple[str, str, str]]) -> None:
    objects = read_objects([Source("f", None)], io.BytesIO(text.encode()))
    described = [(each.document["kind"], each.document["metadata"]["name"], each.origin.at()) for each in objects]
    assert described == found
    assert all(each.document["apiVersion"] for each in objects)


def test_a_large_list_that_cannot_be_cut_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mooring.cli.manifests.yaml_chunks.CUT_FROM", 0)
    text = "apiVersion: v1\nkind: List\nitems:\n- &a {apiVersion: v1, kind: A, metadata: {name: x}}\n- *a\n"
    objects = read_objects([Source("f", None)], io.BytesIO(text.encode()))
    assert [each.document["metadata"]["name"] for each in objects] == ["x", "x"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("kind: A\nmetadata: {name: x}", "f:1: found A without apiVersion", id="no version"),
        pytest.param("apiVersion: v1\nkind: A\nmetadata: 3", "f:3: metadata: found 3", id="no metadata"),
        pytest.param("apiVersion: v1\nkind: A\nmetadata: {}\nspec: [1]", "f:4: spec: found a list", id="no spec"),
        pytest.param(
            "apiVersion: v1\nkind: A\nmetadata: {name: yes}",
            "f:3: metadata.name: found True; wanted text",
            id="no text",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n  ownerReferences: 3",
            'f:5: Pod "x": metadata.ownerReferences: expected a list, found 3',
            id="a field of another type",
        ),
        pytest.param(
            "apiVersion: sea.example/v1\nkind: Ship\nmetadata:\n  name: x\n  ownerReferences: [3]",
            'f:5: CustomResource "x": metadata.ownerReferences[0]: expected an object, found 3',
            id="metadata of a custom resource",
        ),
        pytest.param("apiVersion: v1\nkind: A\n  metadata: 3", "f:3: cannot be read as YAML", id="no YAML"),
        pytest.param("", "f: found nothing in it", id="nothing"),
    ],
)
def test_what_is_no_object(text: str, complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        read_objects([Source("f", None)], io.BytesIO(text.encode()))
    assert complaint in str(caught.value)


# ---


CHECKED_POD: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}


def nested(path: str, value: object) -> Any:
    """`{"spec": {"containers": [value]}}` for `spec|containers|0`."""
    step, _, rest = path.partition("|")
    inner = nested(rest, value) if rest else value
    return [inner] if step == "0" else {step: inner}


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("v1 Pod", "spec|containers|0|resources|requests|cpu"),
        ("v1 Pod", "spec|containers|0|resources|limits|cpu"),
        ("v1 Pod", "spec|initContainers|0|resources|requests|cpu"),
        ("v1 Pod", "spec|resources|requests|cpu"),
        ("v1 Pod", "spec|overhead|cpu"),
        ("v1 Pod", "spec|volumes|0|ephemeral|volumeClaimTemplate|spec|resources|requests|storage"),
        ("v1 Pod", "status|containerStatuses|0|resources|requests|cpu"),
        ("v1 Pod", "status|containerStatuses|0|allocatedResources|cpu"),
        ("v1 Pod", "status|initContainerStatuses|0|allocatedResources|cpu"),
        ("v1 Pod", "status|resources|requests|cpu"),
        ("v1 Pod", "status|allocatedResources|cpu"),
        ("v1 Node", "status|allocatable|example.com/gpu"),
        ("v1 Node", "status|capacity|memory"),
        ("v1 PersistentVolume", "spec|capacity|storage"),
        ("v1 PersistentVolumeClaim", "spec|resources|requests|storage"),
        ("v1 PersistentVolumeClaim", "status|capacity|storage"),
        ("storage.k8s.io/v1 CSIStorageCapacity", "capacity"),
        ("storage.k8s.io/v1 CSIStorageCapacity", "maximumVolumeSize"),
    ],
)
def test_a_broken_quantity_is_found_wherever_it_stands(kind: str, path: str) -> None:
    api_version, name = kind.split(" ")
    view = convert({"apiVersion": api_version, "kind": name, "metadata": {"name": "x"}, **nested(path, "lots")})
    faults = list(problems_of(view))
    assert [fault[0] for fault in faults] == [path.replace("|0", "[0]").replace("|", ".")]
    assert faults[0][1].startswith('"lots" is not a quantity')


@pytest.mark.parametrize(
    ("plain", "fault"),
    [
        pytest.param({"metadata": {}}, ("metadata.name", "found no name; give the object one"), id="no name"),
        pytest.param(
            {"metadata": {"name": "p", "creationTimestamp": "today"}},
            ("metadata.creationTimestamp", "'today' is not a timestamp; expected one such as 2026-01-02T15:04:05Z"),
            id="a creation time that is none",
        ),
        pytest.param(
            {"status": {"startTime": "2026-13-01T00:00:00Z"}},
            ("status.startTime", "'2026-13-01T00:00:00Z' is not a timestamp: month must be in 1..12"),
            id="a start in a month that does not exist",
        ),
        pytest.param(
            {"spec": {"overhead": {"cpu": -1}}},
            ("spec.overhead.cpu", '"-1" is less than nothing; wanted 0 or more'),
            id="less than nothing",
        ),
    ],
)
def test_other_faults(plain: dict[str, Any], fault: tuple[str, str]) -> None:
    assert list(problems_of(convert({**CHECKED_POD, **plain}))) == [fault]


def test_what_is_right_has_no_faults() -> None:
    plain = {
        **CHECKED_POD,
        "metadata": {"generateName": "p-", "creationTimestamp": "2026-01-02T15:04:05Z"},
        "spec": {"containers": [{"resources": {"requests": {"cpu": 0.5, "memory": "1e9", "example.com/gpu": 2}}}]},
    }
    assert list(problems_of(convert(plain))) == []


# ---


@pytest.mark.parametrize(
    ("api_version", "kind", "skipped"),
    [
        pytest.param("v1", "ConfigMap", True, id="a kind that nobody reads here"),
        pytest.param("apps/v1", "Deployment", False, id="a workload"),
        pytest.param("batch/v1beta1", "CronJob", True, id="in an old version"),
        pytest.param("example.com/v1", "Boat", True, id="somebody's own kind"),
        pytest.param("snapshot.storage.k8s.io/v1", "VolumeSnapshot", True, id="a custom resource of Kubernetes people"),
        pytest.param("v1", "Nonsense", False, id="a kind that Kubernetes does not have"),
        pytest.param("apps/v1", "Deploymnet", False, id="a typing error"),
        pytest.param("networking.k8s.io/v1", "Ingres", False, id="a typing error in a group with dots"),
        pytest.param("boats/v1", "Boat", False, id="a group that nobody can own"),
        pytest.param("apps/v1", "ConfigMap", False, id="a kind of another group"),
        pytest.param("kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration", False, id="a configuration"),
    ],
)
def test_what_is_skipped(api_version: str, kind: str, skipped: bool) -> None:
    assert is_skipped(api_version, kind) is skipped


def test_what_scheduling_reads_is_not_skipped() -> None:
    assert [view.kind for view in WATCHED if is_skipped(kind_of_view(view).api_version, view.kind)] == []


def test_a_configuration_is_sent_to_its_flag() -> None:
    assert "--config" in advice_for("kubescheduler.config.k8s.io/v1")
    assert "--config" not in advice_for("v1")
