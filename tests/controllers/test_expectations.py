"""Expectations, and the pods that are created and deleted under them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec
import pytest

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.kinds import POD, REPLICA_SET, RESOURCE_QUOTA, Kind
from mooring.api.views.meta import ObjectMeta
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import ReplicaSet
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.server import ApiServer
from mooring.client.errors import ClientError, ForbiddenError, NoAnswerError, NotFoundError, ServerError, StatusCause
from mooring.client.events import EventKey, EventRecorder
from mooring.client.informer import Informer
from mooring.client.interface import Change, JsonObject, PatchForm
from mooring.controllers.documents import (
    document_of,
    is_namespace_terminating,
    owner_reference,
    read_document,
)
from mooring.controllers.expectations import EXPECTED_S_MAX, Expectations, WriteExpectations
from mooring.controllers.pod_control import CreatedPod, PodControl, PodControlError, pod_of_template
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from tests.api_servers import ADMIN, open_loopback_client, with_api_server
from tests.client.faulty import Fault, FaultyClient, Outcome, Script
from tests.controllers.builders import replica_set, replica_set_view, template

NO_ANSWER = NoAnswerError("no answer")


def has_seen_nothing(revision: str) -> bool:
    return False


def test_creations_are_counted_down() -> None:
    expectations = Expectations(VirtualClock(), has_seen_nothing)
    assert expectations.are_met("a")
    expectations.expect("a", creations=2)
    expectations.creation_seen("a")
    assert not expectations.are_met("a")
    expectations.creation_seen("a")
    assert expectations.are_met("a")


def test_a_deletion_counts_once() -> None:
    expectations = Expectations(VirtualClock(), has_seen_nothing)
    expectations.expect("a", deletions=["p1", "p2"])
    expectations.deletion_seen("a", "p1")
    expectations.deletion_seen("a", "p1")
    assert not expectations.are_met("a")
    expectations.deletion_seen("a", "p2")
    assert expectations.are_met("a")


def test_what_is_never_seen_is_given_up() -> None:
    clock = VirtualClock()
    expectations = Expectations(clock, has_seen_nothing)
    expectations.expect("a", creations=1, deletions=["p1"])
    clock.advance_to(EXPECTED_S_MAX)
    assert not expectations.are_met("a")
    clock.advance_to(EXPECTED_S_MAX + 1)
    assert expectations.are_met("a")


def test_what_is_forgotten_is_not_expected() -> None:
    expectations = Expectations(VirtualClock(), has_seen_nothing)
    expectations.expect("a", creations=1)
    expectations.forget("a")
    expectations.creation_seen("a")
    expectations.deletion_seen("a", "p")
    assert expectations.are_met("a")


def test_what_came_and_went_unseen_is_met_by_an_informer_that_is_newer() -> None:
    seen = ["1"]
    expectations = Expectations(VirtualClock(), lambda revision: int(revision) <= int(seen[-1]))
    expectations.expect("a", creations=3)
    expectations.creation_answered("a", "10")
    expectations.creation_failed("a")
    seen.append("20")
    assert not expectations.are_met("a"), "one request is on its way still"
    expectations.creation_answered("a", "9")
    assert expectations.are_met("a")


def test_an_informer_that_is_older_has_seen_nothing_yet() -> None:
    expectations = Expectations(VirtualClock(), lambda revision: int(revision) <= 9)
    expectations.expect("a", creations=1, deletions=["p1"])
    expectations.creation_answered("a", "10")
    expectations.deletion_seen("a", "p1")
    assert not expectations.are_met("a")
    expectations.creation_seen("a")
    assert expectations.are_met("a")


def test_deletions_are_reported_whatever_happens() -> None:
    expectations = Expectations(VirtualClock(), lambda revision: True)
    expectations.expect("a", creations=1, deletions=["p1"])
    expectations.creation_answered("a", "10")
    assert not expectations.are_met("a"), "the informer has the pod, and will report its deletion"


def test_versions_that_are_no_numbers_prove_nothing() -> None:
    expectations = Expectations(VirtualClock(), lambda revision: True)
    expectations.expect("a", creations=1)
    expectations.creation_answered("a", "abc")
    assert not expectations.are_met("a")


class WritesFixture:
    def __init__(self, client: FaultyClient) -> None:
        self.client = client
        self.informer: Informer[ReplicaSet] = Informer("sets")
        self.writes = WriteExpectations(self.client, REPLICA_SET, ReplicaSet, self.informer)

    async def create(self, name: str) -> bytes:
        return await self.client.create(REPLICA_SET, "default", replica_set(name))

    def see(self, raw: bytes) -> None:
        self.informer.apply(Change.ADDED, decode_as(ReplicaSet, raw))


def play(story: Callable[[WritesFixture], Awaitable[None]], *faults: Fault) -> None:
    clock = VirtualClock()

    async def recorded() -> None:
        async with open_loopback_client(clock) as client:
            fixture = WritesFixture(FaultyClient(client, clock, Script(*faults)))
            fixture.informer.replace([], "1")
            await story(fixture)

    run(recorded(), clock)


def test_a_write_is_waited_for() -> None:
    async def story(fixture: WritesFixture) -> None:
        assert await fixture.writes.are_met("web")
        raw = await fixture.create("web-1")
        assert fixture.writes.answered("web", raw).metadata.name == "web-1"
        assert not await fixture.writes.are_met("web")
        assert await fixture.writes.are_met("another")
        fixture.see(raw)
        assert await fixture.writes.are_met("web")

    play(story)


def test_what_is_forgotten_is_not_waited_for() -> None:
    async def story(fixture: WritesFixture) -> None:
        fixture.writes.answered("web", await fixture.create("web-1"))
        fixture.writes.forget("web")
        assert await fixture.writes.are_met("web")

    play(story)


def test_a_write_without_an_answer_is_read_and_then_awaited() -> None:
    async def story(fixture: WritesFixture) -> None:
        raw = await fixture.create("web-1")
        fixture.writes.failed("web", "default", "web-1", NO_ANSWER)
        assert not await fixture.writes.are_met("web")
        fixture.see(raw)
        assert await fixture.writes.are_met("web")
        assert [request.verb for request in fixture.client.requests] == ["create", "get"]

    play(story)


@pytest.mark.parametrize(
    ("error", "verbs"),
    [
        pytest.param(NO_ANSWER, ["get"], id="it got lost, and is not there"),
        pytest.param(ServerError("broken"), [], id="it was refused"),
    ],
)
def test_a_failed_write_is_not_awaited(error: ClientError, verbs: list[str]) -> None:
    async def story(fixture: WritesFixture) -> None:
        fixture.writes.failed("web", "default", "web-1", error)
        assert await fixture.writes.are_met("web")
        assert [request.verb for request in fixture.client.requests] == verbs

    play(story)


def test_a_probe_that_cannot_run_is_retried() -> None:
    async def story(fixture: WritesFixture) -> None:
        fixture.writes.failed("web", "default", "web-1", NO_ANSWER)
        with pytest.raises(ServerError):
            await fixture.writes.are_met("web")
        assert await fixture.writes.are_met("web")

    play(story, Fault("get", Outcome.BROKEN))


# --- Creating and deleting pods in batches with events, and documents that are written back


OWNER = replica_set_view("web")


class PodControlFixture:
    def __init__(self, clock: VirtualClock, client: FaultyClient) -> None:
        self.recorded: list[tuple[str, str, str]] = []
        self.client = client
        self.expectations = Expectations(clock, lambda revision: True)
        self.control = PodControl(self.client, EventRecorder(self._tell, "test"), clock, self.expectations)

    def _tell(self, key: EventKey, note: str) -> None:
        self.recorded.append((key.regarding.name, key.reason, note))


def play_pod_control(story: Callable[[PodControlFixture], Awaitable[None]], *faults: Fault) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with open_loopback_client(clock) as client:
            await story(PodControlFixture(clock, FaultyClient(client, clock, Script(*faults))))

    run(main(), clock)


def test_a_pod_of_a_template() -> None:
    wanted = template({"app": "web"})
    wanted["metadata"] |= {"annotations": {"a": "b"}, "finalizers": ["f/x"], "name": "ignored"}
    assert pod_of_template(wanted, OWNER) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "web-",
            "labels": {"app": "web"},
            "annotations": {"a": "b"},
            "finalizers": ["f/x"],
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web",
                    "uid": "uid-web",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": wanted["spec"],
    }


def pod_named(name: str) -> Pod:
    return Pod(metadata=ObjectMeta(namespace="default", name=name))


def test_creations_and_deletions_are_reported() -> None:
    async def story(fixture: PodControlFixture) -> None:
        pod = pod_of_template(template({"app": "web"}), OWNER)
        [created] = await fixture.control.create("default", pod, OWNER)
        assert isinstance(created, CreatedPod)
        name = created.name
        await fixture.control.delete(pod_named(name), OWNER)
        assert fixture.recorded == [
            ("web", "SuccessfulCreate", f"Created pod: {name}"),
            ("web", "SuccessfulDelete", f"Deleted pod: {name}"),
        ]
        with pytest.raises(NotFoundError):
            await fixture.control.delete(pod_named(name), OWNER)
        assert len(fixture.recorded) == 2

    play_pod_control(story)


def test_failures_are_reported() -> None:
    async def story(fixture: PodControlFixture) -> None:
        pod = pod_of_template(template({"app": "web"}), OWNER)
        [error] = await fixture.control.create("default", pod, OWNER)
        assert isinstance(error, ServerError)
        [created] = await fixture.control.create("default", pod, OWNER)
        assert isinstance(created, CreatedPod)
        name = created.name
        with pytest.raises(PodControlError, match="unable to delete pods: "):
            await fixture.control.delete(pod_named(name), OWNER)
        assert [reason for _, reason, _ in fixture.recorded] == ["FailedCreate", "SuccessfulCreate", "FailedDelete"]

    play_pod_control(story, Fault("create", Outcome.BROKEN), Fault("delete", Outcome.BROKEN))


def test_a_pod_without_labels_would_never_be_found_again() -> None:
    async def story(fixture: PodControlFixture) -> None:
        with pytest.raises(PodControlError, match="no labels"):
            await fixture.control.create("default", pod_of_template(template({}), OWNER), OWNER)

    play_pod_control(story)


@pytest.mark.parametrize(
    ("count", "fails_at", "attempts", "succeeded"),
    [
        pytest.param(10, None, 10, 10, id="all: 1, 2, 4 and 3"),
        pytest.param(500, 0, 1, 0, id="the first refusal is the last"),
        pytest.param(10, 1, 3, 2, id="a batch is finished: 1 and 2"),
        pytest.param(0, None, 0, 0, id="none"),
    ],
)
def test_batches_grow_until_one_fails(count: int, fails_at: int | None, attempts: int, succeeded: int) -> None:
    tried: list[int] = []

    async def create_one(number: int) -> None:
        tried.append(number)
        if number == fails_at:
            raise ForbiddenError("no")

    async def story(fixture: PodControlFixture) -> None:
        done, error = await fixture.control.slow_start_batch(count, create_one)
        assert (len(tried), done, error is not None) == (attempts, succeeded, fails_at is not None)

    play_pod_control(story)


class CountingClient(LoopbackClient):
    """A client that records the sizes of its batches."""

    def __init__(self, api_server: ApiServer) -> None:
        super().__init__(api_server, ADMIN, "test")
        self.batches: list[int] = []

    async def create(self, kind: Kind, namespace: str, body: JsonObject, *, is_answer_wanted: bool = True) -> bytes:
        self.batches.append(1)
        return await super().create(kind, namespace, body, is_answer_wanted=is_answer_wanted)

    async def create_many(
        self, kind: Kind, namespace: str, template: JsonObject, names: Sequence[str]
    ) -> Sequence[bytes | ClientError]:
        self.batches.append(len(names))
        return await super().create_many(kind, namespace, template, names)


@pytest.mark.parametrize(
    ("count", "wanted_max", "is_one_template", "batches"),
    [
        pytest.param(60, 60, True, [1, 2, 4, 8, 16, 16, 13], id="of one template"),
        pytest.param(6, 6, False, [1] * 6, id="of different templates"),
        pytest.param(60, 40, True, [1, 2, 4, 8, 16, 16], id="no longer wanted after 40 pods"),
    ],
)
def test_pods_of_one_template_are_created_in_batches(
    count: int, wanted_max: int, is_one_template: bool, batches: list[int]
) -> None:
    async def scenario(api_server: ApiServer, _: LoopbackClient) -> None:
        client, recorded = CountingClient(api_server), list[str]()
        recorder = EventRecorder(lambda key, note: recorded.append(key.reason), "test")
        expectations = Expectations(api_server.clock, lambda revision: True)
        control = PodControl(client, recorder, api_server.clock, expectations)
        pod = pod_of_template(template({"app": "web"}), OWNER)
        expectations.expect(OWNER.key, creations=count)
        created, error = await control.create_pods(
            OWNER, count, lambda number: pod if is_one_template else {**pod}, lambda: sum(client.batches) < wanted_max
        )
        assert client.batches == batches
        assert (created, error) == (sum(batches), None)
        assert recorded == ["SuccessfulCreate"] * created
        assert len((await client.list(POD)).items) == created
        assert expectations.are_met(OWNER.key)

    with_api_server(scenario)


def test_each_rejected_pod_of_a_batch_is_told_and_no_longer_expected() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with open_loopback_client(clock) as client:
            quota: Document = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "5"}}}
            used = {"status": {"hard": {"pods": "5"}, "used": {"pods": "0"}}}
            await client.create(RESOURCE_QUOTA, "default", quota)
            await client.patch(RESOURCE_QUOTA, "default", "few", used, form=PatchForm.MERGE, subresource="status")
            recorded = list[str]()
            recorder = EventRecorder(lambda key, note: recorded.append(key.reason), "test")
            expectations = Expectations(clock, lambda revision: False)
            control = PodControl(client, recorder, clock, expectations)
            pod = pod_of_template(template({"app": "web"}), OWNER)
            expectations.expect(OWNER.key, creations=10)
            created, error = await control.create_pods(OWNER, 10, lambda number: pod)
            assert created == 5
            assert isinstance(error, ForbiddenError)
            assert recorded == ["SuccessfulCreate"] * 5 + ["FailedCreate"] * 2
            for _ in range(5):
                assert not expectations.are_met(OWNER.key)
                expectations.creation_seen(OWNER.key)
            assert expectations.are_met(OWNER.key)

    run(main(), clock)


def test_a_namespace_that_goes_away_is_known_by_its_cause() -> None:
    cause = StatusCause("NamespaceTerminating", "namespace x is being terminated", "metadata.namespace")
    assert is_namespace_terminating(ForbiddenError("no", causes=[cause]))
    assert not is_namespace_terminating(ForbiddenError("no"))


# --- Whole objects, to be written back -------------------------------------------------------------------------------


def test_a_document_has_every_field_and_is_the_caller_s_own() -> None:
    whole = {**replica_set("web"), "unheardOf": {"deep": [1]}}
    view = decode_as(ReplicaSet, msgspec.json.encode(whole))
    document = document_of(view)
    assert document == whole
    document["spec"]["replicas"] = 99
    assert document_of(view) == whole


def test_what_was_not_read_from_json_cannot_be_written_back() -> None:
    with pytest.raises(AssertionError, match="nothing to write back"):
        document_of(ReplicaSet())


def test_the_newest_document() -> None:
    async def main() -> None:
        async with open_loopback_client(VirtualClock()) as client:
            view = decode_as(ReplicaSet, await client.create(REPLICA_SET, "default", replica_set("web", replicas=1)))
            document = document_of(view)
            document["spec"]["replicas"] = 2
            await client.update(REPLICA_SET, "default", "web", document)
            assert (await read_document(client, view))["spec"]["replicas"] == 2

    run(main())


def test_controller_references() -> None:
    view = replica_set_view("web")
    assert owner_reference(view) == {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web",
        "uid": "uid-web",
        "controller": True,
        "blockOwnerDeletion": True,
    }
