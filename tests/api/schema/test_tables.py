"""The schema: every file can be read and has the attributes of fields that other packages need.

Tables whose entries refer to each other in circles: other threads see complete entries only.
"""

from __future__ import annotations

import threading
from importlib.resources import files
from pathlib import Path

import pytest

from mooring.api.schema.types import (
    Basic,
    CircularTable,
    Field,
    ListKind,
    ListOf,
    MapOf,
    Scalar,
    Struct,
    api_versions,
    description_of,
    parse_descriptions,
    struct_named,
    struct_of_kind,
)
from tests.waiting import LIMIT_S

DESCRIPTIONS = Path(str(files("mooring.api.schema"))) / "descriptions"


def field(package: str, struct: str, name: str) -> Field:
    return struct_named(package, struct).fields[name]


@pytest.mark.parametrize("api_version", api_versions())
def test_every_package_is_read_and_its_structs_have_fields(api_version: str) -> None:
    assert struct_of_kind(api_version, "Nothing") is None
    assert struct_of_kind(api_version, "Status") is struct_named("meta", "Status")


@pytest.mark.parametrize(
    ("api_version", "kind", "name"),
    [
        ("v1", "Pod", "io.k8s.api.core.v1.Pod"),
        ("apps/v1", "Deployment", "io.k8s.api.apps.v1.Deployment"),
        ("resource.k8s.io/v1", "ResourceClaim", "io.k8s.api.resource.v1.ResourceClaim"),
    ],
)
def test_struct_of_kind(api_version: str, kind: str, name: str) -> None:
    struct = struct_of_kind(api_version, kind)
    assert struct is not None
    assert struct.is_object
    assert struct.openapi_name == name
    assert struct.fields["metadata"].type is struct_named("meta", "ObjectMeta")


def test_structs_that_are_no_objects_have_no_kind() -> None:
    assert struct_of_kind("v1", "PodSpec") is None
    assert struct_of_kind("apps/v9", "Deployment") is None


def test_fields_of_inlined_structs_are_fields_of_the_outer_struct() -> None:
    volume = struct_named("core", "Volume")
    assert "emptyDir" in volume.fields
    assert volume.messages[2] is struct_named("core", "VolumeSource")


def test_attributes_of_fields() -> None:
    ports = field("core", "Container", "ports")
    assert isinstance(ports.type, ListOf)
    assert (ports.list_kind, ports.list_keys) == (ListKind.MAP, ("containerPort", "protocol"))
    assert (ports.patch_strategy, ports.merge_key) == (("merge",), "containerPort")
    assert field("core", "ContainerPort", "protocol").default == "TCP"
    created = field("meta", "ObjectMeta", "creationTimestamp")
    assert created.omits_zero
    assert field("core", "ServiceSpec", "selector").is_atomic is True
    assert field("core", "PersistentVolumeSpec", "claimRef").is_atomic is False
    assert struct_named("core", "ObjectReference").is_atomic


def test_enums_have_their_choices() -> None:
    policy = field("core", "PodSpec", "restartPolicy").type
    assert isinstance(policy, Scalar)
    assert (policy.basic, policy.go_name) == (Basic.STRING, "v1.RestartPolicy")
    assert policy.choices == ("Always", "OnFailure", "Never")


def test_types_refer_to_each_other_by_identity() -> None:
    template = field("apps", "DeploymentSpec", "template")
    assert template.type is struct_named("core", "PodTemplateSpec")
    assert isinstance(field("core", "ConfigMap", "data").type, MapOf)
    assert isinstance(field("apps", "DeploymentSpec", "selector").type, Struct)
    assert field("apps", "DeploymentSpec", "selector").is_pointer


def test_descriptions_belong_to_existing_fields() -> None:
    for package in sorted(path.stem for path in DESCRIPTIONS.iterdir()):
        for name, text in parse_descriptions((DESCRIPTIONS / f"{package}.txt").read_text(encoding="utf-8")).items():
            struct, _, field = name.partition(".")
            if struct == "TypeMeta":  # of every object
                continue
            assert not field or field in struct_named(package, struct).fields, f"{package}: {name}"
            assert text[0].isupper(), f"{package}: {name} begins in lower case"
            assert text[-1] == ".", f"{package}: {name} has no full stop"


def test_a_description_may_have_several_lines() -> None:
    text = "Taint  Keeps pods away,\n  unless they tolerate it.\n  key  About\n    what.\nToleration\n  key  Of what."
    assert parse_descriptions(text) == {
        "Taint": "Keeps pods away, unless they tolerate it.",
        "Taint.key": "About what.",
        "Toleration.key": "Of what.",
    }


def test_missing_descriptions_are_empty() -> None:
    assert description_of("core", "Pod")
    assert description_of("core", "Pod", "nosuch") == ""
    assert description_of("coordination", "Lease") == ""


REFERENCES = {"a": ("b", "c"), "b": ("a",), "c": ()}
Entry = list["Entry"]


class Circles:
    def __init__(self) -> None:
        self.table: CircularTable[str, Entry] = CircularTable()
        self.is_filling = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.made: list[str] = []

    def entry(self, name: str) -> Entry:
        found = self.table.get(name)
        return found if found is not None else self._made(name)

    def _made(self, name: str) -> Entry:
        with self.table.filling() as entries:
            if name not in entries:
                self.made.append(name)
                entry = entries[name] = []
                self.is_filling.set()
                assert self.may_go_on.wait(LIMIT_S)
                for each in REFERENCES[name]:
                    entry.append(self.entry(each))
            return entries[name]


def test_entries_refer_to_each_other() -> None:
    circles = Circles()
    first = circles.entry("a")
    assert first[0][0] is first
    assert circles.entry("b") is first[0]
    assert circles.made == ["a", "b", "c"]


def test_another_thread_sees_an_entry_when_it_is_complete() -> None:
    circles, seen = Circles(), []
    circles.may_go_on.clear()
    filling = threading.Thread(target=lambda: circles.entry("a"))
    filling.start()
    assert circles.is_filling.wait(LIMIT_S)
    assert circles.table.get("a") is None
    reading = threading.Thread(target=lambda: seen.append(len(circles.entry("a"))))
    reading.start()
    circles.may_go_on.set()
    filling.join(LIMIT_S)
    reading.join(LIMIT_S)
    assert (seen, circles.made) == ([2], ["a", "b", "c"])


def test_an_entry_that_could_not_be_filled_is_made_again() -> None:
    circles = Circles()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(REFERENCES, "b", ("missing",))
        with pytest.raises(KeyError, match="missing"):
            circles.entry("a")
    assert circles.table.get("a") is None
    assert len(circles.entry("a")) == 2
