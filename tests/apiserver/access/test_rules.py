"""A rule allows requests, covers other rules, and prints itself as refusals do."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.access.rules import Rule, compacted, document_of, rules_of, uncovered
from tests.apiserver.access.builders import asks, may


@pytest.mark.parametrize(
    ("rule", "request_text", "is_allowed"),
    [
        pytest.param(may("get list", "pods"), "list pods in web", True, id="its verb and its resource"),
        pytest.param(may("get list", "pods"), "watch pods in web", False, id="another verb"),
        pytest.param(may("get", "pods"), "get pods.apps p", False, id="another group"),
        pytest.param(may("get", "pods"), "get pods/log p", False, id="a subresource is another resource"),
        pytest.param(may("get", "pods/log"), "get pods/log p", True, id="that subresource"),
        pytest.param(may("get", "pods/log"), "get pods p", False, id="a subresource without its resource"),
        pytest.param(may("get", "*"), "get pods/log p", True, id="a star stands for subresources, too"),
        pytest.param(
            may("update", "*/scale", "apps"),
            "update deployments/scale.apps d",
            True,
            id="that subresource of everything",
        ),
        pytest.param(may("get", "*/log"), "get pods/exec p", False, id="and no other subresource"),
        pytest.param(may("get", "*/log"), "get pods p", False, id="but not the resources themselves"),
        pytest.param(may("get", "pods/*"), "get pods/log p", False, id="a star after the slash is no star"),
        pytest.param(may("*", "pods"), "evict pods p", True, id="every verb"),
        pytest.param(may("get", "pods", "*"), "get pods.apps p", True, id="every group"),
        pytest.param(may("get", "pods", names="a b"), "get pods a", True, id="an object of that name"),
        pytest.param(may("get", "pods", names="a b"), "get pods c", False, id="an object of another name"),
        pytest.param(may("list", "pods", names="a"), "list pods", False, id="a list has no name"),
        pytest.param(may("get", paths="/healthz"), "get /healthz", True, id="a path"),
        pytest.param(may("get", paths="/healthz"), "get /healthz/ping", False, id="a path below"),
        pytest.param(may("get", paths="/healthz/*"), "get /healthz/ping", True, id="all paths below"),
        pytest.param(may("get", paths="/healthz/*"), "get /healthz", False, id="but not the path itself"),
        pytest.param(may("get", paths="/api*"), "get /apis/apps", True, id="a beginning"),
        pytest.param(may("get", paths="*"), "get /metrics", True, id="every path"),
        pytest.param(may("get", "*"), "get /metrics", False, id="every resource is no path"),
        pytest.param(may("get", paths="*"), "get pods p", False, id="every path is no resource"),
    ],
)
def test_a_rule_allows_what_it_says(rule: Document, request_text: str, is_allowed: bool) -> None:
    assert rules_of({"rules": [rule]})[0].allows(asks("anna", request_text)) is is_allowed


@pytest.mark.parametrize(
    ("held", "wanted", "missing"),
    [
        pytest.param([may("get list", "pods")], [may("get", "pods")], [], id="a part of it"),
        pytest.param([may("get", "pods"), may("list", "pods")], [may("get list", "pods")], [], id="two halves"),
        pytest.param(
            [may("get", "pods")],
            [may("get list", "pods")],
            ['{APIGroups:[""], Resources:["pods"], Verbs:["list"]}'],
            id="a verb too many",
        ),
        pytest.param([may("*", "*", "*")], [may("get", "a b", "x y", "n")], [], id="everything"),
        pytest.param(
            [may("get", "pods", names="a")],
            [may("get", "pods")],
            ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'],
            id="one object is not all of them",
        ),
        pytest.param([may("get", "pods")], [may("get", "pods", names="a")], [], id="all objects are each of them"),
        pytest.param(
            [may("get", "pods", names="a")],
            [may("get", "pods", names="a b")],
            ['{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}'],
            id="one name too many",
        ),
        pytest.param([may("get", "*/log")], [may("get", "pods/log")], [], id="that subresource of everything"),
        pytest.param(
            [may("get", "*/log")],
            [may("get", "pods")],
            ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'],
            id="a resource is no subresource",
        ),
        pytest.param([may("get", paths="/api/*")], [may("get", paths="/api/v1")], [], id="a path below"),
        pytest.param([may("get", paths="/api/*")], [may("get", paths="/api/*")], [], id="the same paths"),
        pytest.param(
            [may("get", paths="/api/v1")],
            [may("get", paths="/api/*")],
            ['{NonResourceURLs:["/api/*"], Verbs:["get"]}'],
            id="one path is not all of them",
        ),
        pytest.param([], [may("get")], [], id="a rule about nothing"),
    ],
)
def test_what_is_not_covered_is_found(held: list[Document], wanted: list[Document], missing: list[str]) -> None:
    found = uncovered(rules_of({"rules": held}), rules_of({"rules": wanted}))
    assert [str(rule) for rule in found] == missing


def test_rules_about_one_resource_are_printed_together() -> None:
    wanted = rules_of({"rules": [may("get list", "pods secrets"), may("get post", paths="/a")]})
    assert sorted(str(rule) for rule in compacted(uncovered([], wanted))) == [
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}',
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}',
        '{NonResourceURLs:["/a"], Verbs:["get"]}',
        '{NonResourceURLs:["/a"], Verbs:["post"]}',
    ]


def test_a_rule_is_written_as_it_was_read() -> None:
    rules = [may("get list", "pods secrets", "core apps", "a"), may("get", paths="/a /b")]
    assert [document_of(rule) for rule in rules_of({"rules": rules})] == rules


@pytest.mark.parametrize("document", [{}, {"rules": None}, {"rules": []}], ids=["absent", "null", "empty"])
def test_a_role_without_rules_has_none(document: Document) -> None:
    assert rules_of(document) == ()


def test_rules_are_equal_by_what_they_say() -> None:
    assert Rule(("get",), ("",), ("pods",)) == Rule(("get",), ("",), ("pods",))
    assert len({Rule(("get",), ("",), ("pods",)), Rule(("get",), ("",), ("pods",))}) == 1


def test_a_rule_of_too_many_combinations_is_compared_as_a_whole() -> None:
    many = " ".join(f"n{number}" for number in range(1_000))
    wanted = rules_of({"rules": [may(many, many, many)]})
    held = rules_of({"rules": [may("get", "pods")]})
    assert wanted[0].parts_count() == 1_000_000_000
    assert uncovered(held, wanted) == list(wanted)
    assert uncovered(rules_of({"rules": [may("*", "*", "*")]}), wanted) == []


def test_parts_are_counted() -> None:
    for rule in rules_of({"rules": [may("get list", "pods secrets", "core apps", "a b"), may("get", paths="/a /b")]}):
        assert rule.parts_count() == len(list(rule.parts()))
