"""The schema: the facts that others rely on are there, and every file can be read."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from mooring.api.schema.model import Basic, Field, ListKind, ListOf, MapOf, Scalar, Struct
from mooring.api.schema.parse import parse_descriptions
from mooring.api.schema.tables import api_versions, description_of, struct_named, struct_of_kind

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
def test_a_kind_has_its_struct(api_version: str, kind: str, name: str) -> None:
    struct = struct_of_kind(api_version, kind)
    assert struct is not None
    assert struct.is_object
    assert struct.openapi_name == name
    assert struct.fields["metadata"].type is struct_named("meta", "ObjectMeta")


def test_what_is_no_object_is_no_kind() -> None:
    assert struct_of_kind("v1", "PodSpec") is None
    assert struct_of_kind("apps/v9", "Deployment") is None


def test_fields_of_inlined_structs_are_fields_of_the_struct_around_them() -> None:
    volume = struct_named("core", "Volume")
    assert "emptyDir" in volume.fields
    assert volume.messages[2] is struct_named("core", "VolumeSource")


def test_how_a_field_is_written_and_merged() -> None:
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


def test_named_texts_know_their_choices() -> None:
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


def test_descriptions_are_of_fields_that_there_are() -> None:
    for package in sorted(path.stem for path in DESCRIPTIONS.iterdir()):
        for name, text in parse_descriptions((DESCRIPTIONS / f"{package}.txt").read_text(encoding="utf-8")).items():
            struct, _, field = name.partition(".")
            if struct == "TypeMeta":  # of every object
                continue
            assert not field or field in struct_named(package, struct).fields, f"{package}: {name}"
            assert text[0].isupper(), f"{package}: {name} begins in lower case"
            assert text[-1] == ".", f"{package}: {name} has no full stop"


def test_a_description_goes_on_in_the_next_line() -> None:
    text = "Taint  Keeps pods away,\n  unless they tolerate it.\n  key  About\n    what.\nToleration\n  key  Of what."
    assert parse_descriptions(text) == {
        "Taint": "Keeps pods away, unless they tolerate it.",
        "Taint.key": "About what.",
        "Toleration.key": "Of what.",
    }


def test_what_is_not_described() -> None:
    assert description_of("core", "Pod")
    assert description_of("core", "Pod", "nosuch") == ""
    assert description_of("coordination", "Lease") == ""
