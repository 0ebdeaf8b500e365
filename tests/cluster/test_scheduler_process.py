"""`mooring scheduler` as its own process, over TLS, against our API server in another one.

All stories run side by side on one API server, each with a scheduler name and a lease of its own: most of the time
they wait, for example until a leader that is cut off gives up.
"""

from __future__ import annotations

import json
import re
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup
from tests.cluster.fault_proxy import FaultProxy, Spoil
from tests.cluster.processes import PATIENT_ELECTION, TOKEN, ApiServer, SchedulerProcess, api_server, scheduler_process

SPOILS = (Spoil.RESET, Spoil.RESET_BEFORE, Spoil.TOO_MANY, Spoil.FAILURE, Spoil.PAGE)
SLOW_S = 0.2
SHORT_ELECTION = (
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=500ms",
)


def test_everything_that_can_happen_to_a_scheduler(tmp_path: Path) -> None:
    async def main() -> None:
        async with api_server(tmp_path) as server:
            for number in range(3):
                await server.add_node(f"n{number}")
            async with TaskGroup("stories") as group:
                group.start(leaders_come_and_go(server), name="leaders")
                group.start(the_network_is_bad_and_the_process_dies(server), name="network")
                group.start(a_leader_that_was_stopped_past_its_lease_sends_nothing(server), name="stopped")

    run_real(main())


async def leaders_come_and_go(server: ApiServer) -> None:
    """Four candidates. The leader is stopped, the next one cut off, the next killed, the last asked to stop."""
    async with AsyncExitStack() as stack:
        candidates = dict([await _candidate(stack, server, n) for n in range(4)])

        stopped = candidates.pop(await server.wait_holder("lead", candidates.__contains__))
        stopped.process.signal(signal.SIGSTOP)
        await server.expire_lease("lead")
        await server.add_pod("lead-1", "lead")
        holder = await server.wait_holder("lead", candidates.__contains__)
        await server.wait_bound("lead-", 1)
        stopped.process.signal(signal.SIGCONT)
        assert await stopped.process.wait_end() == 1
        assert "leader election lost" in stopped.process.log

        cut_off = candidates.pop(holder)
        cut_off.proxy.is_cut_off = True
        assert await cut_off.process.wait_end() == 1
        assert "leader election lost" in cut_off.process.log
        await server.expire_lease("lead")
        await server.add_pod("lead-2", "lead")
        holder = await server.wait_holder("lead", candidates.__contains__)
        await server.wait_bound("lead-", 2)

        killed = candidates.pop(holder)
        killed.process.signal(signal.SIGKILL)
        await killed.process.wait_end()
        await server.expire_lease("lead")
        await server.add_pod("lead-3", "lead")
        last = candidates.pop(await server.wait_holder("lead", candidates.__contains__))
        await server.wait_bound("lead-", 3)

        last.process.signal(signal.SIGTERM)
        assert await last.process.wait_end() == 0
        given_back = await server.lease("lead")
        assert (given_back.holder, given_back.lease_s, given_back.transitions) == ("", 1, 3)


async def the_network_is_bad_and_the_process_dies(server: ApiServer) -> None:
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(FaultProxy(server.url, TOKEN))
        kubeconfig = server.kubeconfig("network", proxy.url)
        await server.add_pod("foreign-1", "somebody-else")
        scheduler = await _scheduling(stack, server, "network", kubeconfig)
        await _shows_itself(server, scheduler)
        for spoil in SPOILS:
            proxy.spoil, proxy.spoilt = spoil, 0
            pods = f"{spoil.name.lower().replace('_', '')}-"
            await _add_pods(server, pods, 10)
            await server.wait_bound(pods, 10)
            assert proxy.spoilt, "nothing was spoilt"
        proxy.spoil, proxy.delay_s = Spoil.NOTHING, SLOW_S
        await _add_pods(server, "slow-", 20)
        await server.wait_bound("slow-", 3, at_least=True)
        scheduler.signal(signal.SIGKILL)  # in the middle of the others
        await scheduler.wait_end()
        assert "Traceback" not in scheduler.log

        await _scheduling(stack, server, "network", kubeconfig)
        await server.wait_bound("slow-", 20)
        assert await server.nodes_of("foreign-") == {"foreign-1": ""}
        assert (await server.lease("network")).holder == ""


async def a_leader_that_was_stopped_past_its_lease_sends_nothing(server: ApiServer) -> None:
    """Its bindings, events and status patches wait for a slow rate limit when it is stopped (SIGSTOP)."""
    async with AsyncExitStack() as stack:
        names, pods = ("slow", "fast"), 60
        proxies = [await stack.enter_async_context(FaultProxy(server.url, TOKEN)) for _ in names]
        old, new = proxies

        async def start(name: str, proxy: FaultProxy, qps: int) -> SchedulerProcess:
            kubeconfig = server.kubeconfig(name, proxy.url)
            started = scheduler_process(
                server, name, *SHORT_ELECTION, kubeconfig=kubeconfig, profile="stopped", qps=qps
            )
            return await stack.enter_async_context(started)

        stopped = await start("slow", old, 10)
        await server.wait_scheduling(stopped)
        holder = (await server.lease("stopped")).holder
        await start("fast", new, 5_000)
        for number in range(pods):
            await server.add_pod(f"stopped-{number}", "stopped", cpu="100m")
        await server.wait_bound("stopped-", 1, at_least=True)
        stopped.signal(signal.SIGSTOP)
        assert (await server.lease("stopped")).holder == holder, "it was stopped as the leader"
        bound = sum(node != "" for node in (await server.nodes_of("stopped-")).values())
        assert bound < pods, "nothing waits"
        await server.wait_holder("stopped", lambda found: found not in ("", holder))
        seen = len(old.writes)
        stopped.signal(signal.SIGCONT)
        assert await stopped.wait_end() == 1
        assert "leader election lost" in stopped.log
        late = [write for write in old.writes[seen:] if "/leases/" not in write]
        assert late == []


async def _shows_itself(server: ApiServer, scheduler: SchedulerProcess) -> None:
    await _add_pods(server, "shown-", 1)
    await server.wait_bound("shown-", 1)
    assert await _asked(scheduler, "/readyz?verbose") == (
        200,
        "[+]shutdown ok\n[+]sched-handler-sync ok\nreadyz check passed\n",
    )
    assert (await _asked(scheduler, "/metrics"))[0] == 403
    assert (await _asked(scheduler, "/metrics", "wrong"))[0] == 401

    # The API server knows of the binding before the scheduler has its answer.
    async def is_counted() -> bool:
        counted = 'scheduler_schedule_attempts_total{profile="network",result="scheduled"} 1.0'
        return counted in (await _asked(scheduler, "/metrics", TOKEN))[1]

    await server.wait_until(is_counted, "the binding is counted")
    code, metrics = await _asked(scheduler, "/metrics", TOKEN)
    assert code == 200
    assert re.search(r'^rest_client_requests_total\{code="201",host="127.0.0.1:\d+",method="POST"\} ', metrics, re.M)
    decisions = json.loads((await _asked(scheduler, "/debug/decisions", TOKEN))[1])
    assert [(decision["pod"], decision["result"]) for decision in decisions] == [("default/shown-0", "Success")]
    cache = json.loads((await _asked(scheduler, "/debug/cache", TOKEN))[1])
    assert cache["counts"]["nodes"] == 3
    configuration = json.loads((await _asked(scheduler, "/configz", TOKEN))[1])["componentconfig"]
    assert configuration["profiles"][0]["schedulerName"] == "network"
    for path in ("/flagz", "/statusz", "/debug/queue", "/debug/pprof/goroutine", "/metrics/resources"):
        assert (await _asked(scheduler, path, TOKEN))[0] == 200, path


async def _asked(scheduler: SchedulerProcess, path: str, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"https://127.0.0.1:{scheduler.port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=False) as answer:
        return answer.status, await answer.text()


@dataclass
class Candidate:
    process: SchedulerProcess
    proxy: FaultProxy


async def _candidate(stack: AsyncExitStack, server: ApiServer, number: int) -> tuple[str, Candidate]:
    """One that fights for the lease, over its own network; and by which name."""
    proxy = await stack.enter_async_context(FaultProxy(server.url, TOKEN))
    name = f"lead-{number}"
    kubeconfig = server.kubeconfig(name, proxy.url)
    started = scheduler_process(server, name, *PATIENT_ELECTION, kubeconfig=kubeconfig, profile="lead")
    process = await stack.enter_async_context(started)

    async def stands_by() -> bool:
        assert process.process.returncode is None, process.log
        return "is held by" in process.log

    await server.wait_until(stands_by, f"{name} stands by")
    identity = re.search(r"standing by for the lease kube-system/lead as (\S+)", process.log)
    assert identity is not None, process.log
    return identity.group(1), Candidate(process, proxy)


async def _scheduling(stack: AsyncExitStack, server: ApiServer, name: str, kubeconfig: Path) -> SchedulerProcess:
    reviews = server.kubeconfig("reviews", server.url)
    flags = (f"--authentication-kubeconfig={reviews}", f"--authorization-kubeconfig={reviews}", "--leader-elect=false")
    started = scheduler_process(server, name, *flags, kubeconfig=kubeconfig)
    process = await stack.enter_async_context(started)
    await server.wait_scheduling(process)
    return process


async def _add_pods(server: ApiServer, prefix: str, count: int) -> None:
    for number in range(count):
        await server.add_pod(f"{prefix}{number}", "network")
