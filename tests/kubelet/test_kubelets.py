"""All kubelets together: nodes that join, fall silent and return; restarts; the same seed gives the same run."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec
import pytest

from mooring.api.decode import convert_as
from mooring.api.kinds import CORE_EVENT, LEASE, NODE, POD, Kind
from mooring.api.views.node import Node
from mooring.apiserver.loopback import LoopbackClient
from mooring.client.batch_writes import StatusPatch, Written
from mooring.client.errors import BadRequestError, ClientError, NotFoundError
from mooring.client.http.list_watch import HttpEvent
from mooring.client.interface import EVERYTHING, Change, Client, PatchForm
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.kubelet import status_manager
from mooring.kubelet.kubelets import Kubelets, NodeSink, PodSink
from mooring.kubelet.pod_status import status_patch
from mooring.kubelet.settings import KubeletSettings
from mooring.kubelet.status_manager import OwnWrites
from mooring.kubelet.views import KubeletPod
from tests.api_servers import open_loopback_client
from tests.client.faulty import Fault, FaultyClient, Outcome, Script, Storm
from tests.kubelet.harness import Body, Play, played, pod, view
from tests.kubelet.simulated.test_runtime import Asked


class RecordingHandler:
    """Records reports."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.pods: dict[str, KubeletPod] = {}
        self.nodes: dict[str, None] = {}

    def node_changed(self, name: str, view: Node | None) -> None:
        self.heard.append(name if view is not None else f"-{name}")
        if view is None:
            self.nodes.pop(name)
        else:
            self.nodes[name] = None

    def known_node_names(self) -> list[str]:
        return [*self.nodes]

    def pod_changed(self, pod: KubeletPod) -> None:
        self.heard.append(pod.metadata.name)
        self.pods[pod.metadata.uid] = pod

    def pod_gone(self, pod: KubeletPod) -> None:
        self.heard.append(f"-{pod.metadata.name}")
        self.pods.pop(pod.metadata.uid, None)

    def latest_pods(self) -> list[KubeletPod]:
        return [*self.pods.values()]


def born(name: str, second: int, on: str = "node-0") -> KubeletPod:
    body = pod(name, on=on)
    body["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{second:02d}Z"
    return view(body, uid=f"uid-{name}")


def node(name: str) -> Node:
    return convert_as(Node, {"metadata": {"name": name}})


def test_pods_come_the_oldest_first_and_those_without_a_node_not_at_all() -> None:
    hearer = RecordingHandler()
    PodSink(hearer, OwnWrites()).replace([born("young", 9), born("old", 1), born("homeless", 0, on="")], "1")
    assert hearer.heard == ["old", "young"]


@pytest.mark.parametrize(
    ("node_name", "revision", "is_wanted"),
    [
        pytest.param("node-0", "7", True, id="another client changed a pod with a node"),
        pytest.param("", "7", False, id="a pod that has no node yet"),
        pytest.param("node-0", "8", False, id="what we wrote ourselves"),
    ],
)
def test_what_is_not_even_read(node_name: str, revision: str, is_wanted: bool) -> None:
    repeats = OwnWrites()
    repeats.expect("8")
    body = pod("a", on=node_name)
    if not node_name:
        del body["spec"]["nodeName"]
    body["metadata"]["resourceVersion"] = revision
    event = HttpEvent(Change.MODIFIED, msgspec.json.encode(body))
    assert PodSink(RecordingHandler(), repeats).is_wanted(event) is is_wanted


def test_changes_are_handed_on() -> None:
    hearer = RecordingHandler()
    intake = PodSink(hearer, OwnWrites())
    intake.apply(Change.ADDED, born("homeless", 1, on=""))
    intake.apply(Change.ADDED, born("a", 1))
    intake.apply(Change.MODIFIED, born("a", 1))
    intake.apply(Change.DELETED, born("a", 1))
    assert hearer.heard == ["a", "a", "-a"]


def test_pods_that_are_missing_after_a_new_list_are_removed() -> None:
    hearer = RecordingHandler()
    pods, nodes = PodSink(hearer, OwnWrites()), NodeSink(hearer)
    pods.replace([born("a", 1), born("b", 2)], "1")
    nodes.replace([node("x"), node("y")], "1")
    hearer.heard.clear()
    pods.replace([born("b", 2), born("c", 3)], "2")
    nodes.replace([node("y")], "2")
    nodes.apply(Change.DELETED, node("y"))
    assert hearer.heard == ["-a", "b", "c", "-x", "y", "-y"]


def ready_of(node: Body) -> str:
    return str({condition["type"]: condition["status"] for condition in node["status"]["conditions"]}["Ready"])


async def mark_lost(play: Play, name: str) -> None:
    """As the node lifecycle controller does when a node was silent for too long."""
    condition = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    patch = {"status": {"conditions": [condition]}}
    await play.client.patch(NODE, "", name, patch, form=PatchForm.STRATEGIC, subresource="status")


async def renewed(play: Play, name: str) -> str:
    lease: Body = msgspec.json.decode(await play.client.get(LEASE, "kube-node-lease", name))
    return str(lease["spec"]["renewTime"])


def test_all_nodes_register_and_have_a_lease() -> None:
    async def story(play: Play) -> None:
        nodes = await play.client.list(NODE, EVERYTHING)
        leases = await play.client.list(LEASE, EVERYTHING)
        assert (len(nodes.items), len(leases.items)) == (7, 7)
        assert play.kubelets.node_names == tuple(f"sim-{number}" for number in range(7))
        assert ready_of(await play.node("sim-3")) == "True"

    played(story, KubeletSettings(count=7, name_prefix="sim-"))


def test_a_node_that_is_there_already_is_taken_over() -> None:
    clock = VirtualClock()

    async def main() -> Body:
        async with open_loopback_client(clock) as client:
            body = {"metadata": {"name": "node-0", "labels": {"mine": "yes"}}}
            await client.create(NODE, "", body)
            async with TaskGroup("test") as group:
                task = group.start(Kubelets(client, clock, Entropy(1), KubeletSettings(count=1)).run(), name="kubelets")
                await clock.wait(5.0)
                task.cancel()
            node: Body = msgspec.json.decode(await client.get(NODE, "", "node-0"))
            return node

    node = run(main(), clock)
    assert node["metadata"]["labels"] == {"mine": "yes"}
    assert (ready_of(node), node["status"]["allocatable"]["cpu"]) == ("True", "32")


def test_a_silent_node_says_nothing_and_its_pods_go_on() -> None:
    async def story(play: Play) -> None:
        await play.create(pod("web", on="node-0"))
        await play.create(pod("boom", on="node-0", stage_set="crash-loop"))
        await play.wait(0.5)
        play.kubelets.silence("node-0")
        before = await renewed(play, "node-0"), await play.line("boom")
        await play.create(pod("late", on="node-0"))
        await play.delete("web")
        await play.wait(60.0)
        assert (await renewed(play, "node-0"), await play.line("boom")) == before
        assert await play.line("late") == "Pending"
        assert await play.line("web") == "Running terminating ready main=running"
        assert (await renewed(play, "node-1")) > before[0]
        await mark_lost(play, "node-0")
        await play.wait(10.0)
        assert ready_of(await play.node("node-0")) == "Unknown"

        play.kubelets.resume("node-0")
        await play.wait(3.0)
        assert ready_of(await play.node("node-0")) == "True"
        assert (await renewed(play, "node-0")) > before[0]
        assert await play.line("boom") == "Running main=waiting:CrashLoopBackOff*3"
        assert await play.line("late") == "Running ready main=running"
        assert await play.line("web") == "gone"

    played(story)


def test_a_pod_that_went_while_its_node_was_silent_is_forgotten() -> None:
    async def story(play: Play) -> None:
        await play.create(pod("web", on="node-0"))
        await play.wait(1.0)
        play.kubelets.silence("node-0")
        await play.delete("web", 0)
        await play.wait(1.0)
        assert play.kubelets.statistics()["pods"] == 1
        play.kubelets.resume("node-0")
        await play.wait(1.0)
        assert play.kubelets.statistics()["pods"] == 0

    played(story)


def test_an_annotation_silences_a_node_too() -> None:
    async def story(play: Play) -> None:
        await play.annotate_node("node-1", {"mooring.dev/silent": "true"})
        await play.wait(1.0)
        before = await renewed(play, "node-1")
        await play.wait(60.0)
        assert await renewed(play, "node-1") == before
        await play.annotate_node("node-1", {"mooring.dev/silent": None})
        await play.wait(1.0)
        assert await renewed(play, "node-1") > before

    played(story)


def test_a_foreign_node_is_simulated_if_its_annotation_requests_it() -> None:
    async def story(play: Play) -> None:
        await play.client.create(NODE, "", {"metadata": {"name": "stranger"}})
        asking = {"metadata": {"name": "guest", "annotations": {"mooring.dev/simulated": "true"}}}
        await play.client.create(NODE, "", asking)
        await play.create(pod("web", on="guest"))
        await play.create(pod("other", on="stranger"))
        await play.wait(5.0)
        assert ready_of(await play.node("guest")) == "True"
        assert await play.line("web") == "Running ready main=running"
        assert await play.line("other") == "Pending"
        assert "conditions" not in (await play.node("stranger"))["status"]

    played(story)


def test_a_deleted_node_is_not_registered_until_it_is_created_again() -> None:
    async def story(play: Play) -> None:
        await play.client.delete(NODE, "", "node-0")
        await play.wait(30.0)
        with pytest.raises(NotFoundError):
            await play.node("node-0")
        await play.client.create(NODE, "", {"metadata": {"name": "node-0"}})
        await play.wait(5.0)
        assert ready_of(await play.node("node-0")) == "True"

    played(story)


def test_a_node_can_join_later() -> None:
    async def story(play: Play) -> None:
        play.kubelets.add("late")
        await play.create(pod("web", on="late"))
        await play.wait(1.0)
        assert await play.line("web") == "Running ready main=running"
        with pytest.raises(KeyError, match="node 'nobody' does not belong to this process"):
            play.kubelets.silence("nobody")

    played(story)


def test_restarted_kubelets_continue_with_the_running_pods() -> None:
    clock = VirtualClock()
    settings = KubeletSettings(count=2)

    async def main() -> None:
        async with open_loopback_client(clock) as client:
            play = Play(client, clock, Kubelets(client, clock, Entropy(1), settings))
            async with TaskGroup("first") as group:
                task = group.start(play.kubelets.run(), name="kubelets")
                await clock.wait(1.0)
                await play.create(pod("web"))
                await play.create(pod("boom", stage_set="crash-loop"))
                await play.create(pod("once", stage_set="fails", restartPolicy="Never"))
                await clock.wait(20.0)
                task.cancel()
            web = await play.status("web")
            assert await play.line("boom") == "Running main=waiting:CrashLoopBackOff*2"
            await play.create(pod("new"))
            await play.delete("web")
            play.kubelets = Kubelets(client, clock, Entropy(2), settings)
            async with TaskGroup("second") as group:
                task = group.start(play.kubelets.run(), name="kubelets")
                await clock.wait(0.05)
                assert (await play.status("web"))["containerStatuses"] == web["containerStatuses"]
                await clock.wait(3.0)
                assert await play.line("web") == "gone"
                assert await play.line("new") == "Running ready main=running"
                assert await play.line("once") == "Failed main=terminated:Error(1)"
                # How long it waited is not written anywhere: it begins with the first wait again, as a kubelet's would.
                assert (await play.line("boom")).endswith("*3")
                task.cancel()

    run(main(), clock)


def test_restarted_kubelets_correct_a_wrong_ready_condition() -> None:
    clock = VirtualClock()
    not_ready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}

    async def main() -> None:
        async with open_loopback_client(clock) as client:
            for seed in (1, 2):
                play = Play(client, clock, Kubelets(client, clock, Entropy(seed), KubeletSettings(count=1)))
                async with TaskGroup("kubelets") as group:
                    task = group.start(play.kubelets.run(), name="kubelets")
                    await clock.wait(2.0)
                    if seed == 1:
                        await play.create(pod("web"))
                    else:
                        await play.change("web", not_ready, subresource="status")
                    await clock.wait(2.0)
                    assert await play.line("web") == "Running ready main=running"
                    task.cancel()

    run(main(), clock)


def test_kubelets_that_start_anew_delete_a_pod_that_had_ended() -> None:
    clock = VirtualClock()
    settings = KubeletSettings(count=1)
    lost = Fault("delete", Outcome.REQUEST_LOST, kind=POD, times=None)

    async def main() -> None:
        async with open_loopback_client(clock) as client:
            first = Kubelets(FaultyClient(client, clock, Script(lost)), clock, Entropy(1), settings)
            play = Play(client, clock, first)
            async with TaskGroup("first") as group:
                task = group.start(first.run(), name="kubelets")
                await clock.wait(2.0)
                await play.create(pod("once", restartPolicy="Never"))
                await clock.wait(2.0)
                await play.delete("once")
                await clock.wait(40.0)
                assert (await play.line("once")).startswith("Succeeded terminating main=terminated")
                task.cancel()
            async with TaskGroup("second") as group:
                task = group.start(Kubelets(client, clock, Entropy(2), settings).run(), name="kubelets")
                await clock.wait(2.0)
                assert await play.line("once") == "gone"
                task.cancel()

    run(main(), clock)


def test_events_tell_what_went_wrong() -> None:
    async def story(play: Play) -> None:
        await play.create(pod("boom", stage_set="crash-loop"))
        await play.create(pod("lost", nodeSelector={"zone": "elsewhere"}))
        await play.wait(10.0)
        reported: list[Body] = [msgspec.json.decode(raw) for raw in (await play.client.list(CORE_EVENT)).items]
        assert [(each["involvedObject"]["name"], each["type"], each["reason"]) for each in reported] == [
            ("boom", "Warning", "BackOff"),
            ("lost", "Warning", "NodeAffinity"),
        ]
        assert reported[0]["message"].startswith("Back-off restarting failed container main in pod boom_default(")
        assert reported[0]["source"]["component"] == "kubelet"

    played(story)


def test_and_what_went_well_if_that_is_wanted() -> None:
    async def story(play: Play) -> None:
        await play.create(pod())
        await play.wait(2.0)
        await play.delete("web")
        await play.wait(2.0)
        reported: list[Body] = [msgspec.json.decode(raw) for raw in (await play.client.list(CORE_EVENT)).items]
        assert sorted(each["reason"] for each in reported) == ["Created", "Killing", "Pulled", "Started"]
        pulled = next(each["message"] for each in reported if each["reason"] == "Pulled")
        assert pulled == 'Container image "example.com/web:1" already present on machine and can be accessed by the pod'

    played(story, KubeletSettings(count=1, records_normal_events=True))


def test_a_container_that_does_not_start_has_no_routine_events() -> None:
    async def story(play: Play) -> None:
        await play.create(pod("stuck", stage_set="image-pull-error"))
        await play.wait(5.0)
        assert await play.line("stuck") == "Pending main=waiting:ErrImagePull"
        assert (await play.client.list(CORE_EVENT)).items == []

    played(story, KubeletSettings(count=1, records_normal_events=True))


def test_logs_are_read_of_this_run_and_of_the_one_before() -> None:
    async def read(play: Play, name: str, asked: Asked) -> str:
        parts = await play.kubelets.logs(await play.pod(name), "main", asked)
        return b"".join([part async for part in parts]).decode()

    async def story(play: Play) -> None:
        await play.create(pod("web"))
        await play.create(pod("boom", stage_set="crash-loop"))
        await play.create(pod("stuck", stage_set="image-pull-error"))
        await play.wait(8.0)
        assert await read(play, "web", Asked()) == "main of web serves on node-0\n"
        assert await read(play, "boom", Asked()) == "main starts\nmain panics\n"
        assert await read(play, "boom", Asked(tail_lines=1)) == "main panics\n"
        with pytest.raises(BadRequestError, match='"main" in pod "stuck" is waiting to start: trying and failing to'):
            await read(play, "stuck", Asked())
        with pytest.raises(BadRequestError, match='previous terminated container "main" in pod "web" not found'):
            await read(play, "web", Asked(is_previous=True))
        await play.wait(7.0)
        assert await read(play, "boom", Asked(is_previous=True)) == "main starts\nmain panics\n"

    played(story)


def history_of(seed: int) -> list[bytes]:
    found: list[bytes] = []

    async def story(play: Play) -> None:
        for number in range(20):
            await play.create(
                pod(f"web-{number}", on=f"node-{number % 2}", stage_set=("", "crash-loop", "flaky")[number % 3])
            )
        await play.wait(120.0)
        found.extend((await play.client.list(POD)).items)

    played(story, seed=seed)
    return found


def test_the_same_seed_gives_the_same_stages_and_another_gives_others() -> None:
    assert history_of(1) == history_of(1)
    assert history_of(1) != history_of(2)


# --- Under injected faults the kubelets keep working; afterwards all pods are in their final state -------------------


OUTCOMES = (Outcome.DONE, Outcome.REQUEST_LOST, Outcome.ANSWER_LOST, Outcome.BROKEN, Outcome.CONFLICT)
PODS = 12


@pytest.mark.parametrize("seed", range(10))
def test_everything_converges_after_a_storm(seed: int) -> None:
    def through(client: Client, clock: VirtualClock) -> Client:
        likelihoods = {"patch": 0.4, "create": 0.3, "delete": 0.4, "list": 0.3, "watch": 0.3, "next_batch": 0.2}
        storm = Storm(Entropy(seed), likelihoods, OUTCOMES, delay_s_max=2.0, requests_max=300)
        return FaultyClient(client, clock, storm)

    async def story(play: Play) -> None:
        for number in range(PODS):
            await play.create(pod(f"web-{number}", on=f"node-{number % 3}"))
        await play.wait(20.0)
        for number in range(0, PODS, 2):
            await play.delete(f"web-{number}")
        await play.wait(400.0)
        for number in range(PODS):
            wanted = "Running ready main=running" if number % 2 else "gone"
            assert await play.line(f"web-{number}") == wanted
        assert play.kubelets.statistics()["pods"] == PODS // 2
        addresses = [(await play.status(f"web-{number}"))["podIP"] for number in range(1, PODS, 2)]
        assert len({*addresses}) == PODS // 2
        assert len((await play.client.list(POD)).items) == PODS // 2

    played(story, KubeletSettings(count=3), seed=seed, through=through)


# --- Leases and statuses are written in batches ----------------------------------------------------------------------


class Batches:
    """Records the batches of all loopback clients."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.leases: list[list[str]] = []
        self.statuses: list[list[str]] = []
        renew_leases, patch_status_many = LoopbackClient.renew_leases, LoopbackClient.patch_status_many

        async def record_leases(
            client: LoopbackClient, namespace: str, names: Sequence[str], renew_time_s: float
        ) -> Sequence[bytes | ClientError]:
            self.leases.append([*names])
            return await renew_leases(client, namespace, names, renew_time_s)

        async def record_statuses(
            client: LoopbackClient, kind: Kind, patches: Sequence[StatusPatch], written: Written
        ) -> Sequence[bytes | ClientError]:
            self.statuses.append([patch.name for patch in patches])
            return await patch_status_many(client, kind, patches, written)

        monkeypatch.setattr(LoopbackClient, "renew_leases", record_leases)
        monkeypatch.setattr(LoopbackClient, "patch_status_many", record_statuses)


async def make_unready(play: Play, names: Sequence[str]) -> None:
    """What the node lifecycle controller does to the pods of a lost node."""
    for name in names:
        await play.change(
            name, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, subresource="status"
        )


def test_leases_that_are_due_together_are_renewed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = Batches(monkeypatch)

    async def story(play: Play) -> None:
        await play.client.delete(LEASE, "kube-node-lease", "node-7")
        play.kubelets.silence("node-8")
        await play.wait(20.0)
        batches.leases.clear()
        await play.wait(10.0)
        renewed = [name for batch in batches.leases for name in batch]
        assert sorted(renewed) == sorted(name for name in play.kubelets.node_names if name != "node-8")
        assert all(2 <= len(batch) <= 16 for batch in batches.leases)
        assert len(batches.leases) <= 100

    played(story, KubeletSettings(count=300))


def test_statuses_that_wait_together_are_written_together(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = Batches(monkeypatch)

    async def story(play: Play) -> None:
        names = [f"web-{number}" for number in range(20)]
        for name in names:
            await play.create(pod(name))
        await play.wait(10.0)
        play.kubelets.silence("node-0")
        await make_unready(play, names)
        for name in names[:10]:
            await play.delete(name)
        await play.wait(10.0)
        batches.statuses.clear()
        play.kubelets.resume("node-0")
        await play.wait(1.0)
        assert batches.statuses[:2] == [names[:16], names[16:]]
        assert {await play.line(name) for name in names[10:]} == {"Running ready main=running"}
        await play.wait(40.0)
        assert {await play.line(name) for name in names[:10]} == {"gone"}

    played(story)


def test_a_rejected_status_does_not_stop_the_others_of_its_batch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    batches = Batches(monkeypatch)
    rejected_ip = ""

    def status_patch_with_one_invalid(status: Body, last: Body) -> Body:
        return {"startTime": "yesterday"} if status.get("podIP") == rejected_ip else status_patch(status, last)

    monkeypatch.setattr(status_manager, "status_patch", status_patch_with_one_invalid)

    async def story(play: Play) -> None:
        nonlocal rejected_ip
        names = [f"web-{number}" for number in range(4)]
        for name in names:
            await play.create(pod(name))
        await play.wait(10.0)
        rejected_ip = (await play.status("web-1"))["podIP"]
        play.kubelets.silence("node-0")
        await make_unready(play, names)
        batches.statuses.clear()
        play.kubelets.resume("node-0")
        await play.wait(10.0)
        assert batches.statuses == [names]
        ready = [name for name in names if await play.line(name) == "Running ready main=running"]
        assert ready == ["web-0", "web-2", "web-3"]
        assert "writing the status of pod default/web-1 failed: " in caplog.text

    with caplog.at_level(logging.WARNING):
        played(story)


def test_the_events_of_own_status_writes_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoding a pod again for each of its status writes would cost more than the write."""
    applied: list[str] = []
    apply = PodSink.apply

    def record(sink: PodSink, change: Change, view: KubeletPod) -> None:
        applied.append(f"{change.value} {view.metadata.name}")
        apply(sink, change, view)

    monkeypatch.setattr(PodSink, "apply", record)

    async def story(play: Play) -> None:
        names = [f"web-{number}" for number in range(20)]
        for name in names:
            await play.create(pod(name))
        await play.wait(10.0)
        assert sorted(applied) == sorted(f"ADDED {name}" for name in names)
        play.kubelets.silence("node-0")
        await make_unready(play, names)
        await play.wait(1.0)
        applied.clear()
        play.kubelets.resume("node-0")  # all statuses are written together
        await play.wait(1.0)
        assert {await play.line(name) for name in names} == {"Running ready main=running"}
        assert applied == []

    played(story)
