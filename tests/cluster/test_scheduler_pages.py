"""The pages of a scheduler while it starts, stands by, leads and ends; the pods of a manifest for the console."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from mooring.api.document import Document
from mooring.api.kinds import NODE, POD, Kind
from mooring.apiserver.worker import WorkerThread
from mooring.client.election import ElectionSettings, LeaderElector
from mooring.client.errors import ForbiddenError
from mooring.client.interface import Client, JsonObject, UnavailableClient
from mooring.cluster.console_pods import manifest_pods_page
from mooring.cluster.scheduler_pages import PageSources, scheduler_pages
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.config.load import load_configuration
from mooring.scheduler.console.history import History
from mooring.scheduler.extenders.extender import Extender, Transport
from mooring.scheduler.loop import ATTEMPT_S_MAX
from mooring.scheduler.scheduler import Scheduler
from mooring.serving.pages import PageRequest, PageResponse
from mooring.serving.server import Page
from tests.api_servers import open_loopback_client
from tests.console.clusters import MANIFEST

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
AMOUNTS = {"cpu": "4", "memory": "8Gi", "pods": "110"}
A_NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": AMOUNTS, "capacity": AMOUNTS},
}
A_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {
        "schedulerName": "default-scheduler",
        "tolerations": [{"operator": "Exists"}],  # no controller takes the not-ready taint away
        "containers": [{"name": "c", "image": "c:1", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}],
    },
}


class Play:
    """A scheduler with its pages, on virtual time."""

    def __init__(
        self,
        clock: VirtualClock,
        client: Client | None = None,
        *,
        hidden: frozenset[str] = frozenset(),
        profiling: bool = True,
        extenders: Sequence[object] = (),
        transport: Transport | None = None,
    ) -> None:
        self.clock = clock
        self.client = client or UnavailableClient()
        self.may_begin, self.stop = asyncio.Event(), asyncio.Event()
        self.metrics = CollectorRegistry()
        self.verbosities: list[int] = []
        configuration = load_configuration({**HEAD, "enableProfiling": profiling, "extenders": list(extenders)})
        self.scheduler = Scheduler(
            self.client,
            configuration,
            clock=clock,
            entropy=Entropy(2),
            metrics=self.metrics,
            transport=transport,
        )
        election = ElectionSettings("kube-system", "kube-scheduler", "me")
        self.elector = LeaderElector(self.client, election, clock=clock, entropy=Entropy(3))
        self.pages: dict[str, Page] = scheduler_pages(
            PageSources(
                name="kube-scheduler",
                scheduler=self.scheduler,
                elector=self.elector,
                configuration=configuration,
                flags={"v": "2"},
                metrics=self.metrics,
                hidden_metrics=hidden,
                may_lead=self.may_begin.is_set,
                is_stopping=self.stop.is_set,
                clock=clock,
                history=History(self.scheduler, clock),
                set_verbosity=self.verbosities.append,
            )
        )

    def ask(self, path: str, method: str, body: bytes = b"", query: dict[str, list[str]] | None = None) -> PageResponse:
        answer = self.pages[path](PageRequest(method, path, query or {}, body=body))
        if not isinstance(answer, PageResponse):
            with pytest.raises(StopIteration) as ended:  # none of these pages waits
                answer.__await__().__next__()
            answer = ended.value.value
        assert isinstance(answer, PageResponse)
        return answer

    def says(self, path: str, **query: str) -> str:
        asked = {name: [value] for name, value in query.items()}
        return self.ask(path, "GET", query=asked).body.decode()


def test_from_start_to_end() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with open_loopback_client(clock) as client:
            await from_start_to_end(Play(clock, client))

    async def from_start_to_end(play: Play) -> None:
        assert "[-]sched-handler-sync failed" in play.says("/readyz")
        assert play.says("/livez") == play.says("/healthz") == "ok"
        await play.client.create(NODE, "", A_NODE)
        await play.client.create(POD, "default", A_POD)
        async with TaskGroup("play") as group:
            running = group.start(play.scheduler.run(play.may_begin), name="scheduler")
            await clock.wait(1)
            assert play.says("/readyz") == "ok", "who stands by is ready"
            assert play.says("/metrics/resources") == ""
            assert json.loads(play.says("/debug/queue"))["counts"]["active"] == 1
            assert json.loads(play.says("/debug/decisions")) == [], "and decides nothing"

            play.may_begin.set()
            await clock.wait(1)
            assert json.loads(play.says("/debug/decisions", pod="default/web"))[0]["node"] == "n1"
            assert json.loads(play.says("/debug/queue", pod="default/web"))["pods"][0]["state"] == "on its node"
            assert json.loads(play.says("/debug/cache", node="n1"))["nodes"][0]["podNames"] == ["default/web"]
            assert 'kube_pod_resource_limit{namespace="default",node="n1",pod="web"' in play.says("/metrics/resources")

            play.stop.set()
            assert "[-]shutdown failed" in play.says("/readyz")
            running.cancel()
            await clock.wait(1)
            assert play.says("/livez") == "ok", "a scheduler that was asked to stop is not restarted"

    run(main(), clock)


class HangingTransport:
    """To an extender that never answers."""

    async def send(self, extender: Extender, verb: str, body: bytes) -> bytes:
        await asyncio.Event().wait()
        raise AssertionError

    async def close(self) -> None:
        pass


def test_a_scheduler_whose_loop_has_ended_or_stands_still_is_not_alive() -> None:
    clock = VirtualClock()

    async def hang(play: Play) -> None:
        await play.client.create(NODE, "", A_NODE)
        async with TaskGroup("play") as group:
            running = group.start(play.scheduler.run(), name="scheduler")
            await clock.wait(2 * ATTEMPT_S_MAX)
            assert play.says("/livez") == play.says("/healthz") == "ok", "without a pod there is nothing to do"
            await play.client.create(POD, "default", A_POD)
            await clock.wait(ATTEMPT_S_MAX - 1)
            assert play.says("/livez") == "ok"
            await clock.wait(2)
            failed = "[+]ping ok\n[-]scheduling-loop failed: reason withheld\n"
            assert play.says("/livez") == f"{failed}livez check failed\n"
            assert play.says("/healthz") == f"{failed}[+]leaderElection ok\nhealthz check failed\n"
            assert "has worked on one pod for 181 s" in play.says("/livez/scheduling-loop")
            running.cancel()
        assert play.says("/livez/scheduling-loop") == "internal server error: the scheduling loop has ended\n"

    async def main() -> None:
        extender = {"urlPrefix": "http://extender", "filterVerb": "filter"}
        async with open_loopback_client(clock) as client:
            await hang(Play(clock, client, extenders=[extender], transport=HangingTransport()))

    run(main(), clock)


DIGITS = "9" * 5_000
"""More than Python reads."""


@pytest.mark.parametrize(
    ("path", "query", "complaint"),
    [
        ("/debug/queue", {"pod": ["web"]}, "pod: found 'web', wanted NAMESPACE/NAME\n"),
        ("/debug/decisions", {"pod": ["a/b/c"]}, "pod: found 'a/b/c', wanted NAMESPACE/NAME\n"),
        ("/debug/decisions", {"limit": ["many"]}, "limit: found 'many', wanted a number\n"),
        ("/debug/decisions", {"limit": [DIGITS]}, f"limit: found '{DIGITS}', wanted a number\n"),
        ("/debug/queue", {"pod": ["a/b"], "nearest": [DIGITS]}, f"nearest: found '{DIGITS}', wanted a number\n"),
        ("/debug/queue", {"pod": ["a/b"], "nearest": ["\u0663"]}, "nearest: found '\u0663', wanted a number\n"),
    ],
)
def test_an_invalid_query_is_rejected(path: str, query: dict[str, list[str]], complaint: str) -> None:
    async def main() -> None:
        answer = Play(clock).ask(path, "GET", query=query)
        assert (answer.code, answer.body.decode()) == (400, complaint)

    clock = VirtualClock()
    run(main(), clock)


def test_leadership_is_a_gauge() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with open_loopback_client(clock) as client:
            await lead(Play(clock, client))

    async def lead(play: Play) -> None:
        line = 'leader_election_master_status{name="kube-scheduler"} '
        assert f"{line}0.0" in play.says("/metrics")
        async with TaskGroup("play") as group:
            leading = group.start(play.elector.run(play.stop.wait), name="elector")  # type: ignore[arg-type]
            await clock.wait(1)
            assert f"{line}1.0" in play.says("/metrics")
            leading.cancel()

    run(main(), clock)


def test_a_metric_can_be_left_out() -> None:
    async def main() -> None:
        play = Play(clock, hidden=frozenset(("scheduler_pending_pods", "scheduler_schedule_attempts_total")))
        shown = play.says("/metrics")
        assert "scheduler_pending_pods" not in shown
        assert "scheduler_schedule_attempts_total" not in shown
        assert "scheduler_cache_size" in shown

    clock = VirtualClock()
    run(main(), clock)


@pytest.mark.parametrize(
    ("method", "body", "code", "set_to"),
    [("PUT", b"4", 200, [4]), ("PUT", b"x", 400, []), ("PUT", b"9" * 5_000, 400, []), ("GET", b"", 406, [])],
    ids=["a number", "no number", "too many digits", "GET"],
)
def test_how_much_is_logged(method: str, body: bytes, code: int, set_to: list[int]) -> None:
    async def main() -> None:
        play = Play(clock)
        assert play.ask("/debug/flags/v", method, body).code == code
        assert play.verbosities == set_to

    clock = VirtualClock()
    run(main(), clock)


def test_profiles_are_served_only_where_they_are_wanted() -> None:
    async def main() -> None:
        assert "/debug/pprof/profile" in Play(clock).pages
        without = Play(clock, profiling=False).pages
        assert not [path for path in without if path.startswith(("/debug/pprof", "/debug/flags"))]

    clock = VirtualClock()
    run(main(), clock)


class _MayNotCreate(UnavailableClient):
    async def dry_run_create(self, kind: Kind, namespace: str, body: JsonObject) -> Document:
        raise ForbiddenError('pods is forbidden: User "viewer" cannot create resource "pods"')


def asked(may_read: bool, there: int = 0) -> PageResponse:
    async def main() -> PageResponse:
        async def reads(namespace: str) -> bool:
            return may_read

        async def pods_there(kind: str, namespace: str, name: str) -> int:
            assert (kind, namespace, name) == ("Deployment", "default", "web")
            return there

        body = msgspec.json.encode({"manifest": MANIFEST.replace('requests: {cpu: "1"}, ', "")})
        async with WorkerThread() as worker:
            page = manifest_pods_page(_MayNotCreate(), worker, pods_there)
            answer = page(PageRequest("POST", "/console/data/pods", {}, body=body, may_read=reads))
            assert not isinstance(answer, PageResponse)
            return await answer

    return run(main(), VirtualClock())


def test_pods_that_may_not_be_created_have_defaults_and_a_note() -> None:
    found = msgspec.json.decode(asked(may_read=True, there=1).body)
    [pod] = found["pods"]
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}, "the limit, as the API server does"
    assert found["copies"] == [1]
    assert any("has 1 of 2 pods already" in note for note in found["notes"])
    assert any("without priority" in note and 'User "viewer" cannot create' in note for note in found["notes"])


def test_plans_need_permission_to_list_the_pods_of_the_namespace() -> None:
    answer = asked(may_read=False)
    assert (answer.code, b"cannot list pods" in answer.body) == (422, True)
