"""Tests of validation.fields and validation.values."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation import fields
from mooring.apiserver.validation.fields import FieldError, Verbatim, aggregated, go_value
from mooring.apiserver.validation.values import (
    internal_diff,
    internal_value,
    internal_values,
    json_error,
    means_the_same,
)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (fields.required("spec.image"), "spec.image: Required value"),
        (fields.required("spec.image", "say one"), "spec.image: Required value: say one"),
        (fields.invalid("spec.count", -1, "too few"), "spec.count: Invalid value: -1: too few"),
        (fields.invalid("spec.name", 'a"b', "odd"), 'spec.name: Invalid value: "a\\"b": odd'),
        (fields.duplicate("spec.ports[1]", "web"), 'spec.ports[1]: Duplicate value: "web"'),
        (fields.not_found("spec.volume", "x"), 'spec.volume: Not found: "x"'),
        (
            fields.not_supported("spec.type", "A", ("B", "C")),
            'spec.type: Unsupported value: "A": supported values: "B", "C"',
        ),
        (fields.forbidden("spec", "not now"), "spec: Forbidden: not now"),
        (fields.too_long("name", 63), "name: Too long: may not be more than 63 bytes"),
        (fields.too_long("name", 1), "name: Too long: may not be more than 1 byte"),
        (fields.too_many("items", 9, 8), "items: Too many: 9: must have at most 8 items"),
        (fields.invalid("", "x", "nowhere"), '<nil>: Invalid value: "x": nowhere'),
    ],
    ids=lambda each: each.field if isinstance(each, FieldError) else "",
)
def test_messages_of_field_errors(error: FieldError, message: str) -> None:
    assert error.message == message


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (3.0, "3"),
        (0.5, "0.5"),
        (None, "null"),
        (["a", "<b>"], '["a","\\u003cb\\u003e"]'),
        ({"b": 1, "a": 2}, '{"b":1,"a":2}'),
        (Verbatim("0x0"), "0x0"),
    ],
)
def test_go_value_formats_values_like_go(value: object, text: str) -> None:
    assert go_value(value) == text


def test_aggregated_errors_are_in_brackets_without_duplicates() -> None:
    first, second = fields.required("a"), fields.required("b")
    assert aggregated([first]) == "a: Required value"
    assert aggregated([first, second, first]) == "[a: Required value, b: Required value]"


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        pytest.param(
            {"limits": {"memory": "1Gi"}}, {"limits": {"memory": "1024Mi"}}, True, id="same quantity in another unit"
        ),
        pytest.param({"limits": {"memory": "1Gi"}}, {"limits": {"memory": "1G"}}, False, id="another amount"),
        pytest.param({"limits": {}}, {}, True, id="empty and absent"),
        pytest.param({"limits": {"cpu": "1"}}, {"limits": {"cpu": "1", "memory": "1"}}, False, id="one more"),
        pytest.param({"claims": [{"name": "a"}]}, {"claims": [{"name": "b"}]}, False, id="another name"),
        pytest.param({"claims": []}, {"claims": None}, True, id="an empty list and none"),
    ],
)
def test_means_the_same_compares_resource_requirements(one: Document, other: Document, is_same: bool) -> None:
    assert means_the_same(one, other, "core", "ResourceRequirements") is is_same


def test_means_the_same_distinguishes_an_absent_struct_from_an_empty_one() -> None:
    assert not means_the_same({"affinity": {}}, {}, "core", "PodSpec")


def test_internal_value_has_every_field_under_its_go_name() -> None:
    assert internal_value({"type": "Localhost"}, "SeccompProfile") == {"Type": "Localhost", "LocalhostProfile": None}


def test_internal_value_of_a_pod_template_has_the_layout_of_kube_apiserver() -> None:
    """Metadata is embedded, and the fields about namespaces of the host are in the security context."""
    spec = {"containers": [{"name": "c"}], "hostNetwork": True, "securityContext": {"runAsUser": 1}}
    shown = internal_value({"metadata": {"labels": {"a": "b"}}, "spec": spec}, "PodTemplateSpec")
    assert list(shown) == ["labels", "Spec"]
    assert "HostNetwork" not in shown["Spec"]
    assert "ServiceAccount" not in shown["Spec"]
    context = shown["Spec"]["SecurityContext"]
    assert list(context)[:6] == [
        "HostNetwork",
        "HostPID",
        "HostIPC",
        "ShareProcessNamespace",
        "HostUsers",
        "SELinuxOptions",
    ]
    assert (context["HostNetwork"], context["RunAsUser"]) == (True, 1)
    assert shown["Spec"]["Containers"][0]["TTY"] is False
    names = list(shown["Spec"])
    assert names[names.index("Subdomain") + 1 :][:2] == ["SetHostnameAsFQDN", "Affinity"]
    assert names[names.index("Priority") + 1 :][:2] == ["PreemptionPolicy", "DNSConfig"]


def test_internal_values_of_an_absent_list_is_null() -> None:
    assert internal_values(None, "PodIP") is None
    assert internal_values([{"ip": "1.1.1.1"}], "PodIP") == [{"IP": "1.1.1.1"}]


def test_internal_diff_shows_changed_lines_with_context() -> None:
    old, new = {"name": "a", "image": "x"}, {"name": "a", "image": "y"}
    lines = internal_diff(old, new, "Container").splitlines()
    assert lines[0].startswith("@@ -1,")
    assert [line for line in lines if line[0] in "+-"] == ['- "Image": "x",', '+ "Image": "y",']


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("{}", "", id="an object"),
        pytest.param(" null", "", id="null"),
        pytest.param("x", "invalid character 'x' looking for beginning of value", id="no JSON"),
        pytest.param("", "unexpected end of JSON input", id="nothing"),
        pytest.param("[]", "json: cannot unmarshal array into Go value of type v1.Thing", id="a list"),
        pytest.param("5", "json: cannot unmarshal number into Go value of type v1.Thing", id="a number"),
        pytest.param('"a"', "json: cannot unmarshal string into Go value of type v1.Thing", id="a text"),
        pytest.param("true", "json: cannot unmarshal bool into Go value of type v1.Thing", id="a flag"),
    ],
)
def test_json_error_describes_text_that_is_no_json_object(text: str, error: str) -> None:
    assert json_error(text.encode(), "v1.Thing") == error
    assert json_error(b"[]") == ""
