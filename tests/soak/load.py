"""The clients of the soak test: writers, users of workloads, hostile clients, a probe and a watch.

Input: a control plane, a seed. Output: histories for the checker (`history.py`).

 1. Clients use aiohttp, and no code of ours: the check is from outside.
 2. A writer never has two writes of one name under way, gives every write a value of its own, and leaves a name alone
    after a lost answer.
 3. The probe counts only while no fault is active, and only if this process itself is on time: on a busy machine a late
    answer says nothing about the server.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from mooring.api.quantity import quantity_milli
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from tests.apiserver.http.fuzz_connection import RUDE, be_rude
from tests.apiserver.http.fuzzer import is_meant_failure
from tests.cluster.running import ADMIN_TOKEN
from tests.run_queue import RunQueueDelay
from tests.soak.history import PodHistory, SeenPod, Violations, WriteHistory
from tests.soak.hostile import HostileRequest, hostile_requests
from tests.soak.servers import ControlPlane

WRITERS = 4
NAMES_OF_WRITER = 12
PODS_MAX = 60
"""Pods of users besides those of the Deployment. Together they request more than the nodes have, at times."""
REPLICAS_MAX = 24
POD_CPUS = ("500m", "1", "2", "4", "7")
REQUEST_S_MAX = 8.0
"""Beyond it a client gives up, and the outcome is unknown."""
CUT_SHARE = 0.02
"""Share of writes whose client closes the connection before the answer."""
READY_S_MAX = 1.0
"""`/readyz` answers within this time while no fault is active, not counting the time in which the operating system ran
other processes."""
LATE_S_MAX = 0.25
"""If this process itself is later than this, the probe does not count."""
RECOVERY_S_MAX = 60.0
"""After a fault the server is ready within this time, and a pod is bound within this time."""
NAMESPACE = "soak"
WRITES = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"

Outcome = tuple[int, bytes]
LOST: Outcome = (0, b"")
"""No answer: the outcome is unknown."""


class Clients:
    """Everything that talks to one control plane."""

    def __init__(self, plane: ControlPlane, entropy: Entropy) -> None:
        self.plane = plane
        self.entropy = entropy
        self.clock = SystemClock()
        self.violations = Violations()
        self.writes = WriteHistory(self.violations)
        self.pods = PodHistory(self.violations)
        self.codes: Counter[int] = Counter()
        self.counts: Counter[str] = Counter()
        self.ready_s_worst = 0.0
        self.last_hostile = "none"
        self.are_hostile_clients_paused = False
        self.faults_active = 0
        self.fault_number = 0
        """Grows with each beginning and end of a fault, so that a client sees whether one was active in between."""
        self.is_over = False
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._writing = 0
        self._late_s = 0.0
        self._tls = ssl.create_default_context()
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=0)
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        async with aiohttp.ClientSession(self.plane.url, connector=connector, headers=headers) as self._session:
            yield

    @asynccontextmanager
    async def fault(self, name: str) -> AsyncIterator[None]:
        """While a fault is active, and until the server is ready again, no answer is expected."""
        self.faults_active += 1
        self.fault_number += 1
        self.counts[name] += 1
        try:
            yield
            await self.wait_ready(name)
        finally:
            self.faults_active -= 1
            self.fault_number += 1

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        form: str = "application/json",
        s_max: float = REQUEST_S_MAX,
    ) -> Outcome:
        """One request. A lost answer is not an error here."""
        assert self._session is not None
        data = body if isinstance(body, bytes) or body is None else msgspec.json.encode(body)
        number = self.fault_number
        try:
            async with asyncio.timeout(s_max):
                headers = {"Content-Type": form} if data is not None else {}
                async with self._session.request(method, path, data=data, headers=headers) as answer:
                    content = await answer.read()
        except (aiohttp.ClientError, OSError, TimeoutError):
            return LOST
        self.codes[answer.status] += 1
        is_quiet = not self.faults_active and number == self.fault_number
        if answer.status >= 500 and is_quiet and not is_meant_failure(answer.status, content):
            self.violations.add("no 5xx", f"{method} {path[:100]}: {answer.status} {content[:300]!r}")
        return answer.status, content

    # ---------------------------------------------------------------------------------------------- readiness

    async def wait_ready(self, after: str) -> None:
        began_s = self.clock.now_s()
        while (await self.send("GET", "/readyz", s_max=READY_S_MAX))[0] != 200:
            if self.clock.now_s() - began_s > RECOVERY_S_MAX:
                words = self.plane.server.log_tail()
                self.violations.add("the server comes back", f"not ready {RECOVERY_S_MAX:g} s after {after}: {words}")
                return
            await self.clock.wait(0.1)

    async def probe(self) -> None:
        """Ask for readiness all the time."""
        while not self.is_over:
            await self.clock.wait(0.2)
            if self.faults_active:
                continue
            delay = RunQueueDelay(self.plane.server.pid, os.getpid())
            self._late_s, number, delayed_s, began_s = 0.0, self.fault_number, delay.total_s(), self.clock.now_s()
            code, _ = await self.send("GET", "/readyz")
            took_s = self.clock.now_s() - began_s - (delay.total_s() - delayed_s)
            if number != self.fault_number:
                continue
            if self._late_s > LATE_S_MAX:
                self.counts["probes not counted"] += 1
                continue
            self.ready_s_worst = max(self.ready_s_worst, took_s)
            if code != 200 or took_s > READY_S_MAX:
                text = (
                    f"answered {code or 'nothing'} after {took_s:.2f} s; the last hostile request: {self.last_hostile}"
                )
                self.violations.add(f"/readyz within {READY_S_MAX:g} s", text)

    async def measure_lateness(self) -> None:
        """How late this process is, because the machine has other work."""
        while not self.is_over:
            began_s = self.clock.now_s()
            await self.clock.wait(0.05)
            self._late_s = max(self._late_s, self.clock.now_s() - began_s - 0.05)

    # ------------------------------------------------------------------------------------------------- writes

    async def write(self, number: int) -> None:
        """One writer: creates, updates and deletes objects of its own."""
        entropy, revisions, made = self.entropy.fork(f"writer-{number}"), dict[str, str](), 0
        while not self.is_over:
            await self._may_write.wait()
            self._writing += 1
            try:
                chance = entropy.uniform()
                if len(revisions) < 2 or (chance < 0.4 and len(revisions) < NAMES_OF_WRITER):
                    made += 1
                    await self._write_once("POST", f"w{number}-{made}", revisions, entropy)
                else:
                    name = entropy.choose(sorted(revisions))
                    await self._write_once("PUT" if chance < 0.75 else "DELETE", name, revisions, entropy)
            finally:
                self._writing -= 1
            await self.clock.wait(0.01 if not self.faults_active else 0.1)

    async def _write_once(self, method: str, name: str, revisions: dict[str, str], entropy: Entropy) -> None:
        value = None if method == "DELETE" else f"{name}.{self.writes.acknowledged}.{entropy.suffix()}"
        metadata = {"name": name, **({"resourceVersion": revisions[name]} if method == "PUT" else {})}
        body: object = {"metadata": metadata, "data": {"value": value, "filler": "x" * entropy.integer_below(2_000)}}
        if method == "DELETE":
            body = {"preconditions": {"resourceVersion": revisions[name]}}
        path = WRITES if method == "POST" else f"{WRITES}/{name}"
        attempt = self.writes.begin(name, value)
        is_cut = entropy.uniform() < CUT_SHARE
        code, content = await self.send(method, path, body, s_max=0.003 if is_cut else REQUEST_S_MAX)
        if code in (200, 201):
            if value is not None:
                revisions[name] = msgspec.json.decode(content)["metadata"]["resourceVersion"]
                self.writes.acknowledge(attempt, int(revisions[name]))
                return
            self.writes.acknowledge(attempt, None)
        elif 400 <= code < 500:
            self.writes.reject(attempt)
            if code != 429:  # no other client writes this name, and its revision is known
                self.violations.add("every acknowledged write is present", f"{method} {path}: {code} {content[:300]!r}")
        else:
            self.writes.lose(attempt)
        revisions.pop(name, None)

    async def verify(self) -> None:
        """Compare the server's state with what was acknowledged, while no write is under way."""
        self._may_write.clear()
        try:
            while self._writing:
                await self.clock.wait(0.01)
            floor, deleted = self.writes.floor, self.writes.deleted()
            code, content = await self.send("GET", WRITES)
            if code != 200:
                return  # a fault has begun
            document = msgspec.json.decode(content)
            found = {item["metadata"]["name"]: item["data"]["value"] for item in document["items"] if _is_written(item)}
            self.writes.check_list(found, int(document["metadata"]["resourceVersion"]), floor)
            self.writes.forget(deleted)
            self.counts["verifications"] += 1
        finally:
            self._may_write.set()

    # --------------------------------------------------------------------------------------------------- pods

    async def use_pods(self) -> None:
        """Creates and deletes pods, and scales a Deployment."""
        entropy, made, alive = self.entropy.fork("pods"), 0, list[str]()
        while not self.is_over:
            await self.clock.wait(0.05)
            chance = entropy.uniform()
            if chance < 0.05:
                scale = {"spec": {"replicas": entropy.integer_below(REPLICAS_MAX)}}
                await self.send("PATCH", f"{DEPLOYMENTS}/web", scale, form="application/merge-patch+json")
            elif chance < 0.55 and len(alive) < PODS_MAX:
                made += 1
                name = f"pod-{made}"
                if (await self.send("POST", PODS, _pod(name, entropy.choose(POD_CPUS))))[0] in (0, 201):
                    alive.append(name)
            elif alive:
                name = entropy.choose(alive)
                options = {"gracePeriodSeconds": 0} if entropy.uniform() < 0.5 else {}
                if (await self.send("DELETE", f"{PODS}/{name}", options))[0] in (200, 202, 404):
                    alive.remove(name)

    async def create_workloads(self) -> None:
        await self.send("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": _pod("", "1")["spec"]}
        spec = {"replicas": 6, "selector": {"matchLabels": labels}, "template": template}
        await self.send("POST", DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
        code, content = await self.send("GET", "/api/v1/nodes")
        assert code == 200, content
        for node in msgspec.json.decode(content)["items"]:
            self.pods.set_capacity(node["metadata"]["name"], quantity_milli(node["status"]["allocatable"]["cpu"]))

    async def watch_pods(self) -> None:
        """Follow all pods, across every fault."""
        while not self.is_over:
            code, content = await self.send("GET", "/api/v1/pods")
            if code != 200:
                await self.clock.wait(0.2)
                continue
            document = msgspec.json.decode(content)
            self.pods.see_list([_seen(pod) for pod in document["items"]], int(document["metadata"]["resourceVersion"]))
            while await self._follow_pods():
                await self.clock.wait(0.2)

    async def _follow_pods(self) -> bool:
        """One watch. Returns whether the next one may go on from where this one ended."""
        assert self._session is not None
        path = f"/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion={self.pods.revision}"
        try:
            async with self._session.get(path, timeout=aiohttp.ClientTimeout(total=None, sock_read=30.0)) as answer:
                if answer.status != 200:
                    return answer.status != 410
                async for line in answer.content:
                    event = msgspec.json.decode(line)
                    if event["type"] == "ERROR":
                        return event["object"]["code"] != 410  # type: ignore[no-any-return]
                    if event["type"] != "BOOKMARK":
                        revision = int(event["object"]["metadata"]["resourceVersion"])
                        self.pods.see_event(_seen(event["object"]), revision, is_deleted=event["type"] == "DELETED")
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
            self.counts["watches lost"] += 1
        return not self.is_over

    async def check_scheduling(self) -> None:
        """A pod that fits is bound, after everything that has happened. It requests nothing: the nodes may be full.

        A scheduler that lost its lease has ended, perhaps after the last fault: it is started again.
        """
        pod, status = _pod("last", "0"), dict[str, Any]()
        began_s = self.clock.now_s()
        while self.clock.now_s() - began_s < RECOVERY_S_MAX:
            for scheduler in self.plane.schedulers:
                if not scheduler.is_alive:
                    scheduler.start()
                    self.counts[f"{scheduler.name} started again"] += 1
            await self.send("POST", PODS, pod)
            code, content = await self.send("GET", f"{PODS}/last")
            if code == 200:
                found = msgspec.json.decode(content)
                if found["spec"].get("nodeName"):
                    return
                status = found["status"]
            await self.clock.wait(0.5)
        words = "\n".join(f"{each.name}: {each.log_tail()[-1_500:]}" for each in self.plane.schedulers)
        _, lease = await self.send("GET", LEASE)
        text = f"not bound within {RECOVERY_S_MAX:g} s: {status}\nlease: {lease.decode()[-600:]}\n{words}"
        self.violations.add("pods are scheduled", text)

    # ---------------------------------------------------------------------------------------------- hostile clients

    async def attack(self) -> None:
        """Malformed requests, hostile bodies and patterns."""
        entropy = self.entropy.fork("strangers")
        hostile = hostile_requests()
        while not self.is_over:
            await self.clock.wait(0.2 + entropy.uniform() * 0.4)
            if self.faults_active or self.are_hostile_clients_paused:
                continue
            if entropy.uniform() < 0.5:
                await self._break_rules(entropy)
            else:
                await self._send_hostile(entropy.choose(hostile))

    async def send_all_hostile(self) -> None:
        for request in hostile_requests():
            await self._send_hostile(request)

    async def _send_hostile(self, request: HostileRequest) -> None:
        self.last_hostile = request.name
        await self.send(request.method, request.path, request.body, form=request.form)
        self.counts["hostile requests"] += 1

    async def _break_rules(self, entropy: Entropy) -> None:
        way, number = entropy.choose(RUDE), self.fault_number
        try:
            code = await asyncio.to_thread(be_rude, way, self.plane.port, self._tls, entropy)
        except (OSError, AssertionError, ValueError) as error:
            if number == self.fault_number:
                self.violations.add("malformed requests are rejected", f"{way.name}: {error!r}")
            return
        self.counts["malformed requests"] += 1
        if code not in way.codes and number == self.fault_number:
            self.violations.add("malformed requests are rejected", f"{way.name}: {code}, expected one of {way.codes}")


def _is_written(item: Mapping[str, Any]) -> bool:
    return "value" in (item.get("data") or {})


def _pod(name: str, cpu: str) -> dict[str, Any]:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


def _seen(pod: Mapping[str, Any]) -> SeenPod:
    requests = [
        container.get("resources", {}).get("requests", {}).get("cpu", "0") for container in pod["spec"]["containers"]
    ]
    return SeenPod(
        uid=pod["metadata"]["uid"],
        name=pod["metadata"]["name"],
        node=pod["spec"].get("nodeName", ""),
        cpu_milli=sum(quantity_milli(request) for request in requests),
        has_ended=pod.get("status", {}).get("phase") in ("Succeeded", "Failed"),
    )
