"""The life cycle of CustomResourceDefinitions on a complete server, their conditions, and conflicts of names."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CUSTOM_RESOURCE_DEFINITION
from mooring.apiserver.custom.definition_controller import CustomKinds
from mooring.apiserver.custom.naming import (
    APPROVED_ANNOTATION,
    NamesInUse,
    approval_status,
    condition,
    condition_of,
    established_status,
    is_true,
    named_status,
    names_in_use,
    with_condition,
)
from mooring.apiserver.resources import ResourceTable
from mooring.apiserver.worker import WorkerThread
from mooring.kit.loop import run, run_real
from tests.apiserver.custom.definitions import definition, version, widget
from tests.apiserver.http.served import Served, served
from tests.waiting import LIMIT_S

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def plain(**spec: Any) -> Document:
    """A definition as a client sends it."""
    whole = definition(version(), **spec)
    return {
        **{name: whole[name] for name in ("apiVersion", "kind", "spec")},
        "metadata": {"name": "widgets.example.com"},
    }


async def send_request(
    server: Served, method: str, path: str, body: object = None, content: str = "application/json"
) -> Any:
    headers = {"Content-Type": content}
    async with server.session.request(method, server.url(path), json=body, headers=headers) as response:
        return response.status, await response.json() if response.content_type.endswith(
            "json"
        ) else await response.text()


async def until(server: Served, path: str, status: int) -> Document:
    async with asyncio.timeout(LIMIT_S):
        while True:
            code, body = await send_request(server, "GET", path)
            if code == status:
                return body if isinstance(body, dict) else {}
            await server.api_server.clock.wait(0.01)


def test_a_definition_is_established_used_and_cleaned_up() -> None:
    async def main() -> list[Any]:
        async with served() as server:
            codes = [(await send_request(server, "POST", DEFINITIONS, plain()))[0]]
            await until(server, WIDGETS, 200)
            held = widget("held")
            held["metadata"]["finalizers"] = ["example.com/wait"]
            codes += [(await send_request(server, "POST", WIDGETS, obj))[0] for obj in (widget("free"), held)]
            code, ending = await send_request(server, "DELETE", f"{DEFINITIONS}/widgets.example.com")
            codes += [code, ending["metadata"]["finalizers"], ending["status"]["conditions"][-1]["reason"]]
            await until(server, f"{WIDGETS}/free", 404)
            codes.append((await send_request(server, "POST", WIDGETS, widget("late")))[0])
            patch = {"metadata": {"finalizers": None}}
            codes.append(
                (await send_request(server, "PATCH", f"{WIDGETS}/held", patch, "application/merge-patch+json"))[0]
            )
            return codes

    assert run_real(main()) == [
        201,
        201,
        201,
        200,
        ["customresourcecleanup.apiextensions.k8s.io"],
        "InstanceDeletionPending",
        403,
        200,
    ]


def test_released_names_are_accepted_for_another_definition() -> None:
    async def main() -> tuple[int, str]:
        async with served() as server:
            await send_request(server, "POST", DEFINITIONS, plain())
            await until(server, WIDGETS, 200)
            other = plain()
            other["metadata"] = {"name": "gadgets.example.com"}
            other["spec"]["names"] = {"plural": "gadgets", "kind": "Widget"}
            await send_request(server, "POST", DEFINITIONS, other)
            gadgets = WIDGETS.replace("widgets", "gadgets")
            await server.api_server.clock.wait(0.05)
            before, _ = await send_request(server, "GET", gadgets)
            await send_request(server, "DELETE", f"{DEFINITIONS}/widgets.example.com")
            return before, (await until(server, gadgets, 200))["kind"]

    assert run_real(main()) == (404, "WidgetList")


def _put(custom: CustomKinds, document: Document) -> None:
    run(custom.put(CUSTOM_RESOURCE_DEFINITION, document))


def served_kinds(table: ResourceTable) -> list[str]:
    return [resource.kind.api_version for resource in table]


def test_the_resource_table_follows_accepted_changed_and_removed_definitions() -> None:
    table = ResourceTable()
    custom = CustomKinds(table, WorkerThread())
    _put(custom, definition(accepted=False))
    assert served_kinds(table) == []
    _put(custom, definition())
    assert served_kinds(table) == ["example.com/v1"]
    _put(custom, definition(version(), version(name="v2")))
    assert served_kinds(table) == ["example.com/v1", "example.com/v2"]
    custom.remove(CUSTOM_RESOURCE_DEFINITION, definition())
    assert served_kinds(table) == []


def test_a_changed_condition_time_does_not_change_the_resource_table() -> None:
    table = ResourceTable()
    custom = CustomKinds(table, WorkerThread())
    _put(custom, definition())
    before = table.generation
    other = definition()
    other["metadata"]["resourceVersion"] = "2"
    other["status"]["conditions"][0]["lastTransitionTime"] = "2027-01-01T00:00:00Z"
    _put(custom, other)
    assert table.generation == before


def test_a_broken_definition_does_not_stop_the_others() -> None:
    table = ResourceTable()
    custom = CustomKinds(table, WorkerThread())
    broken = definition()
    broken["spec"]["versions"] = [{"name": "v1", "served": True, "storage": False}]
    _put(custom, broken)
    _put(custom, definition())
    assert served_kinds(table) == ["example.com/v1"]


NOW, LATER = "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"


def test_is_true_and_condition_of_read_conditions() -> None:
    assert is_true(definition(), "Established")
    assert not is_true(definition(accepted=False), "Established")
    assert condition_of(definition(), "Terminating") is None


def test_the_time_of_a_condition_changes_with_its_status_only() -> None:
    terminating = condition("Terminating", is_met=True, reason="R", message="m")
    status = with_condition({}, terminating, NOW)
    assert status == {"conditions": [{**terminating, "lastTransitionTime": NOW}]}
    other = condition("Terminating", is_met=True, reason="S", message="n")
    assert with_condition(status, other, LATER) == {"conditions": [{**other, "lastTransitionTime": NOW}]}
    done = condition("Terminating", is_met=False, reason="S", message="n")
    assert with_condition(status, done, LATER) == {"conditions": [{**done, "lastTransitionTime": LATER}]}


def test_free_names_are_accepted_before_the_definition_is_established() -> None:
    fresh = definition(accepted=False)
    named = named_status(fresh, NamesInUse(), NOW)
    assert named is not None
    assert named["acceptedNames"] == fresh["spec"]["names"]
    assert [(each["type"], each["status"], each["reason"]) for each in named["conditions"]] == [
        ("NamesAccepted", "True", "NoConflicts"),
        ("Established", "False", "Installing"),
    ]
    established = established_status({**fresh, "status": named}, NOW)
    assert established is not None
    assert [(each["status"], each["reason"]) for each in established["conditions"]] == [
        ("True", "NoConflicts"),
        ("True", "InitialNamesAccepted"),
    ]
    done = {**fresh, "status": established}
    assert named_status(done, NamesInUse(), NOW) is None
    assert established_status(done, NOW) is None


@pytest.mark.parametrize(
    ("taken", "reason", "message"),
    [
        pytest.param(NamesInUse(resources={"widgets"}), "PluralConflict", '"widgets" is already in use', id="plural"),
        pytest.param(NamesInUse(resources={"widget"}), "SingularConflict", '"widget" is already in use', id="singular"),
        pytest.param(NamesInUse(kinds={"Widget"}), "KindConflict", '"Widget" is already in use', id="kind"),
        pytest.param(NamesInUse(kinds={"WidgetList"}), "ListKindConflict", '"WidgetList" is already in use', id="list"),
    ],
)
def test_taken_names_are_not_accepted(taken: NamesInUse, reason: str, message: str) -> None:
    fresh = definition(accepted=False)
    status = named_status(fresh, taken, NOW)
    assert status is not None
    found = condition_of({"status": status}, "NamesAccepted")
    assert found is not None
    assert (found["status"], found["reason"], found["message"]) == ("False", reason, message)
    established = condition_of({"status": status}, "Established")
    assert established is not None
    assert (established["status"], established["reason"]) == ("False", "NotAccepted")


def test_all_conflicting_short_names_are_reported_together() -> None:
    fresh = definition(accepted=False)
    fresh["spec"]["names"]["shortNames"] = ["w", "x", "y"]
    status = named_status(fresh, NamesInUse(resources={"w", "x"}), NOW)
    assert status is not None
    found = condition_of({"status": status}, "NamesAccepted")
    assert found is not None
    assert found["message"] == '["w" is already in use, "x" is already in use]'
    assert "shortNames" not in status["acceptedNames"]


def test_names_in_use_are_the_accepted_names_of_all_definitions() -> None:
    taken = names_in_use([definition(), definition(accepted=False)])
    assert {"widgets", "widget"} <= taken.resources
    assert {"Widget", "WidgetList"} <= taken.kinds


@pytest.mark.parametrize(
    ("annotations", "reason", "is_met"),
    [
        pytest.param({}, "MissingAnnotation", "False", id="missing"),
        pytest.param({APPROVED_ANNOTATION: "unapproved, test"}, "UnapprovedAnnotation", "False", id="bypassed"),
        pytest.param({APPROVED_ANNOTATION: "https://example.com/1"}, "ApprovedAnnotation", "True", id="approved"),
        pytest.param({APPROVED_ANNOTATION: "yes"}, "InvalidAnnotation", "False", id="invalid"),
    ],
)
def test_definitions_in_groups_of_kubernetes_get_an_approval_condition(
    annotations: Document, reason: str, is_met: str
) -> None:
    protected = definition()
    protected["spec"]["group"] = "foo.k8s.io"
    protected["metadata"]["annotations"] = annotations
    status = approval_status(protected, NOW)
    assert status is not None
    assert (status["conditions"][-1]["reason"], status["conditions"][-1]["status"]) == (reason, is_met)
    assert approval_status({**protected, "status": status}, NOW) is None
    assert approval_status(definition(), NOW) is None
