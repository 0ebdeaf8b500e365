"""The new ReplicaSet of a Deployment, revisions, and copied annotations."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.views.workloads import Deployment, ReplicaSet
from mooring.api.well_known import (
    DEPLOYMENT_REVISION,
    DEPLOYMENT_REVISION_HISTORY,
    DEPLOYMENT_ROLLBACK_TO,
    POD_TEMPLATE_HASH,
)
from mooring.controllers.deployment.history import (
    HISTORY_LENGTH_MAX,
    by_revision,
    generations,
    last_revision,
    new_set_annotations,
    new_set_document,
    next_revision,
    revision_of,
    rollback_revision,
    rolled_back,
    template_hash,
    template_of,
)
from tests.controllers.builders import deployment_view, replica_set_view


def with_template(template: Document) -> Deployment:
    return decode_as(Deployment, msgspec.json.encode({"metadata": {"name": "web"}, "spec": {"template": template}}))


def at_revision(name: str, revision: str | None, created: int = 0) -> ReplicaSet:
    annotations = {DEPLOYMENT_REVISION: revision} if revision is not None else {}
    return replica_set_view(name, annotations=annotations, created=created)


SPEC = {"containers": [{"name": "c", "image": "app:1"}]}


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        pytest.param(
            {"metadata": {"labels": {"a": "b"}}, "spec": SPEC},
            {"spec": SPEC, "metadata": {"labels": {"a": "b", POD_TEMPLATE_HASH: "x"}}},
            True,
            id="the hash and the order of fields do not count",
        ),
        pytest.param(
            {"metadata": {"creationTimestamp": None, "labels": {}}, "spec": SPEC}, {"spec": SPEC}, True, id="nor nulls"
        ),
        pytest.param(
            {"spec": SPEC}, {"spec": {"containers": [{"name": "c", "image": "app:2"}]}}, False, id="another image"
        ),
        pytest.param({"spec": SPEC}, {"spec": {**SPEC, "securityContext": {}}}, False, id="an empty object is there"),
        pytest.param(
            {"spec": SPEC}, {"metadata": {"annotations": {"a": "b"}}, "spec": SPEC}, False, id="another annotation"
        ),
    ],
)
def test_templates_are_compared(one: Document, other: Document, is_same: bool) -> None:
    assert (template_of(with_template(one)) == template_of(with_template(other))) is is_same


def test_the_hash_spells_no_words_and_changes_with_collisions() -> None:
    names = {template_hash(b"{}", collisions) for collisions in (None, 0, 1, 2)}
    assert len(names) == 4
    assert set("".join(names)) <= set("bcdfghjklmnpqrstvwxz2456789")


def test_the_new_set_is_the_oldest_with_the_wanted_template() -> None:
    deployment = deployment_view(image="app:2")
    labels = {"app": "web"}
    old = replica_set_view("old", image="app:1", labels=labels, created=1)
    older = replica_set_view("new", image="app:2", labels={**labels, POD_TEMPLATE_HASH: "x"}, created=2)
    younger = replica_set_view("newer", image="app:2", labels=labels, created=3)
    assert generations(deployment, [younger, older, old]) == (older, [old, younger])
    assert generations(deployment, [old]) == (None, [old])


@pytest.mark.parametrize(
    ("text", "revision"), [(None, 0), ("7", 7), ("+7", 7), ("-7", -7), ("seven", None), ("", None), ("1e3", None)]
)
def test_a_revision_is_a_number(text: str | None, revision: int | None) -> None:
    assert revision_of(at_revision("a", text)) == revision


@pytest.mark.parametrize(
    ("revisions", "following", "last"),
    [
        pytest.param([], 1, 0, id="none"),
        pytest.param(["1"], 2, 0, id="one"),
        pytest.param(["1", "3", "2"], 4, 2, id="several"),
        pytest.param(["odd", "5"], 6, 0, id="what is no number does not count"),
    ],
)
def test_revisions_follow_each_other(revisions: list[str], following: int, last: int) -> None:
    sets = [at_revision(str(index), revision) for index, revision in enumerate(revisions)]
    assert (next_revision(sets), last_revision(sets)) == (following, last)


def test_sets_in_the_order_of_their_revisions() -> None:
    sets = [at_revision("c", "3"), at_revision("b", "1", created=2), at_revision("a", "1", created=1)]
    assert [each.metadata.name for each in by_revision(sets)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("present", "revision", "result"),
    [
        pytest.param({}, 1, {DEPLOYMENT_REVISION: "1", "team": "a"}, id="a new one"),
        pytest.param({DEPLOYMENT_REVISION: "1"}, 1, {DEPLOYMENT_REVISION: "1", "team": "a"}, id="the same revision"),
        pytest.param(
            {DEPLOYMENT_REVISION: "1"},
            3,
            {DEPLOYMENT_REVISION: "3", DEPLOYMENT_REVISION_HISTORY: "1", "team": "a"},
            id="again after two others",
        ),
        pytest.param(
            {DEPLOYMENT_REVISION: "3", DEPLOYMENT_REVISION_HISTORY: "1"},
            5,
            {DEPLOYMENT_REVISION: "5", DEPLOYMENT_REVISION_HISTORY: "1,3", "team": "a"},
            id="and again",
        ),
        pytest.param({DEPLOYMENT_REVISION: "9"}, 5, {DEPLOYMENT_REVISION: "9", "team": "a"}, id="it never goes back"),
        pytest.param(
            {"own": "x"}, 1, {DEPLOYMENT_REVISION: "1", "own": "x", "team": "a"}, id="what others wrote stays"
        ),
    ],
)
def test_annotations_of_the_new_set(present: dict[str, str], revision: int, result: dict[str, str]) -> None:
    deployment = deployment_view(
        annotations={"team": "a", DEPLOYMENT_REVISION: "77", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    )
    assert new_set_annotations(deployment, present, revision) == result


def test_a_long_history_forgets_its_beginning() -> None:
    history = ",".join(str(number) for number in range(1000, 1400))
    wanted = new_set_annotations(
        deployment_view(), {DEPLOYMENT_REVISION: "1400", DEPLOYMENT_REVISION_HISTORY: history}, 1401
    )
    kept = wanted[DEPLOYMENT_REVISION_HISTORY]
    assert len(kept) <= HISTORY_LENGTH_MAX
    assert kept.endswith(",1399,1400")


def test_the_document_of_a_new_set() -> None:
    deployment = deployment_view(replicas=4, minReadySeconds=5, annotations={"team": "a"})
    document = new_set_document(deployment, None, 3, 2)
    hashed = template_hash(template_of(deployment), None)
    labels = {"app": "web", POD_TEMPLATE_HASH: hashed}
    metadata, spec = document["metadata"], document["spec"]
    assert metadata["name"] == f"web-{hashed}"
    assert metadata["labels"] == spec["template"]["metadata"]["labels"] == spec["selector"]["matchLabels"] == labels
    assert metadata["annotations"] == {
        "team": "a",
        DEPLOYMENT_REVISION: "3",
        "deployment.kubernetes.io/desired-replicas": "4",
        "deployment.kubernetes.io/max-replicas": "5",
    }
    assert metadata["ownerReferences"][0]["uid"] == "uid-web"
    assert (spec["replicas"], spec["minReadySeconds"]) == (2, 5)


def test_a_long_name_is_cut_for_the_hash() -> None:
    name = new_set_document(deployment_view("d" * 253), None, 1, 1)["metadata"]["name"]
    assert len(name) == 253


@pytest.mark.parametrize(("text", "revision"), [("0", 0), ("3", 3), ("", None), ("x", None)])
def test_the_rollback_annotation(text: str, revision: int | None) -> None:
    assert rollback_revision(deployment_view(annotations={DEPLOYMENT_ROLLBACK_TO: text})) == revision


def test_going_back_takes_template_and_annotations_along() -> None:
    deployment = deployment_view(
        image="app:2", annotations={DEPLOYMENT_ROLLBACK_TO: "1", DEPLOYMENT_REVISION: "2", "mine": "x"}
    )
    labels: dict[str, Any] = {"app": "web", POD_TEMPLATE_HASH: "h"}
    target = replica_set_view(
        "old", image="app:1", labels=labels, annotations={DEPLOYMENT_REVISION: "1", "target_annotations": "y"}
    )
    document = rolled_back(deployment, target)
    assert document["metadata"]["annotations"] == {DEPLOYMENT_REVISION: "2", "target_annotations": "y"}
    assert document["spec"]["template"]["metadata"]["labels"] == {"app": "web"}
    assert document["spec"]["template"]["spec"]["containers"][0]["image"] == "app:1"


def test_a_rollback_annotation_that_cannot_be_followed_is_removed() -> None:
    deployment = deployment_view(annotations={DEPLOYMENT_ROLLBACK_TO: "9", "mine": "x"})
    assert rolled_back(deployment, None)["metadata"]["annotations"] == {"mine": "x"}
