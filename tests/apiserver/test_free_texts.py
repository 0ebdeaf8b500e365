"""A free text is one that no rule reads: pods that differ in nothing else are all judged alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.apiserver.free_texts import form_of, outline_of
from mooring.apiserver.strategies.pod import PodStrategy
from tests.apiserver.pod_builders import call_for, pod


def encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def with_container(**parts: Any) -> bytes:
    return encoded({"containers": [{"name": "c", **parts}]})


def variable(value: str, name: str = "A") -> bytes:
    return with_container(env=[{"name": name, "value": value}])


@pytest.mark.parametrize(
    ("spec", "texts"),
    [
        pytest.param(variable("one"), [b'"one"'], id="the value of a variable"),
        pytest.param(variable("{[,:]} <&>"), [b'"{[,:]} <&>"'], id="a value with signs in it"),
        pytest.param(
            with_container(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]),
            [b'"1"', b'"2"'],
            id="two values",
        ),
        pytest.param(with_container(image="nginx:1.2"), [b'"nginx:1.2"'], id="an image with a tag"),
        pytest.param(with_container(image="host:5000/a/b:v1"), [b'"host:5000/a/b:v1"'], id="an image from a port"),
        pytest.param(with_container(args=["-a", "", "b c"]), [b'"-a","","b c"'], id="arguments"),
        pytest.param(with_container(command=["sh", "-c", "echo $HOME"]), [b'"sh","-c","echo $HOME"'], id="a command"),
        pytest.param(
            with_container(livenessProbe={"exec": {"command": ["true"]}}), [b'"true"'], id="the command of a probe"
        ),
        pytest.param(variable(""), [], id="an empty value is none"),
        pytest.param(variable("$(A) more"), [], id="a value that may extend another"),
        pytest.param(variable('say "a"'), [], id="a value with quotes"),
        pytest.param(variable("a\\b"), [], id="a value with a backslash"),
        pytest.param(variable("\u00e4"), [], id="a value with a letter that is not plain"),
        pytest.param(variable("a\x7f"), [], id="a value with a character that cannot be seen"),
        pytest.param(
            with_container(env=[{"value": "a", "name": "A"}]), [], id="a variable written the other way round"
        ),
        pytest.param(with_container(image="nginx"), [], id="an image without a tag"),
        pytest.param(with_container(image="nginx:latest"), [], id="the latest image"),
        pytest.param(with_container(image=" nginx:1"), [], id="an image with a blank"),
        pytest.param(with_container(image="nginx@sha256:" + "0" * 64), [], id="an image by its digest"),
        pytest.param(with_container(args=[]), [], id="no arguments"),
        pytest.param(with_container(args=["a", 'b"']), [], id="arguments with quotes"),
        pytest.param(encoded({"nodeSelector": {"name": "a", "value": "b"}}), [], id="labels with such keys"),
        pytest.param(encoded({"tolerations": [{"key": "a", "value": "b"}]}), [], id="the value of a taint"),
        pytest.param(
            encoded({"volumes": [{"name": "v", "image": {"reference": "a:1"}}]}), [], id="a volume of an image"
        ),
        pytest.param(variable("x", 'A","value":"y"},{"name":"B'), [], id="places in a string"),
    ],
)
def test_an_outline_has_holes_where_free_texts_were(spec: bytes, texts: list[bytes]) -> None:
    outline = outline_of(spec)
    assert outline.texts == texts
    assert outline.form.count(b"\x00") == len(texts)
    marked = outline.marked()
    assert marked is not None
    assert form_of(marked).filled(outline.texts) == spec


def test_each_text_goes_where_its_mark_went() -> None:
    outline = outline_of(with_container(image="nginx:1", args=["a", "b"], env=[{"name": "A", "value": "x"}]))
    marked = json.loads(outline.marked() or b"")
    container = marked["containers"][0]
    turned = encoded([container["env"], container["args"], container["image"], container["env"]])
    filled = json.loads(form_of(turned).filled(outline.texts))
    assert filled == [[{"name": "A", "value": "x"}], ["a", "b"], "nginx:1", [{"name": "A", "value": "x"}]]


def test_a_spec_that_says_what_marks_say_is_not_marked() -> None:
    assert outline_of(with_container(image="mooring.mark/0:latest")).marked() is None


UNWISE = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"env": UNWISE}, {"env": [UNWISE[0], UNWISE[0]]}, id="values of a variable that is set twice"),
        pytest.param({"image": "nginx:1"}, {"image": "host:5000/a/b:v1"}, id="images"),
        pytest.param({"image": "nginx:1"}, {"image": "UPPER//:" + "a" * 200}, id="an image that is none"),
        pytest.param({"args": ["a"]}, {"args": ["", "$(B)", "c" * 9999]}, id="arguments"),
        pytest.param({"command": ["a"]}, {"command": ["", "b"]}, id="commands"),
        pytest.param(
            {"livenessProbe": {"httpGet": {"port": 1, "path": "/", "httpHeaders": [{"name": "H", "value": "a"}]}}},
            {"livenessProbe": {"httpGet": {"port": 1, "path": "/", "httpHeaders": [{"name": "H", "value": " ;"}]}}},
            id="headers",
        ),
    ],
)
def test_pods_of_one_outline_are_judged_alike(first: Document, second: Document) -> None:
    assert _outcome(first) == _outcome(second)
    assert (
        outline_of(encoded(pod(container=first)["spec"])).form
        == outline_of(encoded(pod(container=second)["spec"])).form
    )


@pytest.mark.parametrize(
    ("spec", "second"),
    [
        pytest.param(
            {"dnsConfig": {"options": [{"name": "ndots", "value": "2"}]}},
            {"dnsConfig": {"options": [{"name": "ndots", "value": "many"}]}},
            id="options of DNS",
        ),
        pytest.param(
            {"securityContext": {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "0"}]}},
            {"securityContext": {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "x"}]}},
            id="settings of the kernel",
        ),
    ],
)
def test_specs_of_one_outline_are_judged_alike(spec: Document, second: Document) -> None:
    assert _outcome({}, spec) == _outcome({}, second)
    assert outline_of(encoded(spec)).form == outline_of(encoded(second)).form


def _outcome(container: Document, spec: Document | None = None) -> tuple[object, ...]:
    """What a pod without such a container comes to, but for the texts themselves."""
    made, call = pod(spec or {}, container), call_for()
    judgement = PodStrategy(POD).judge_new(made, call)
    policy = made["spec"]["containers"][0].get("imagePullPolicy")
    return [str(fault) for fault in judgement.faults], list(judgement.warnings), call.warnings, policy, made["status"]
