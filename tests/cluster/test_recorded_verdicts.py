"""Recorded verdicts of kube-scheduler, on the long way: API server, TLS, watch, our scheduler as a process, binding.

A scenario is made in the API server, and its first pending pod is what counts. An API server does not take everything
that a recording may hold (a status, a deletion that is under way): a scenario counts if the engine, asked about what
the API server made of it, still says what was recorded. Then the scheduler's own word has to be the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from mooring.api.kinds import POD, Kind, kind_named
from mooring.client.errors import AlreadyExistsError, ClientError, NotFoundError, StatusError
from mooring.client.interface import Deletion, PatchForm
from mooring.kit.loop import run_real
from tests.cluster.processes import TOKEN, ApiServer, SchedulerProcess, api_server, scheduler_process
from tests.golden.recordings import recorded
from tests.waiting import LIMIT_S
from tools import verdicts

FAMILIES = ("taints", "nodeaffinity", "ports", "images", "interpod", "spread", "fit")
OF_EACH = 2
LOOKED_AT_MAX = 8
OBJECTS_MAX = 40
Json = dict[str, Any]


def test_the_long_way_ends_as_recorded(tmp_path: Path) -> None:
    counted = run_real(_play(tmp_path))
    assert len(counted) >= len(FAMILIES), f"too few scenarios went through the API server unchanged: {counted}"


async def _play(folder: Path) -> list[str]:
    counted = []
    async with api_server(folder) as server:
        reviews = server.kubeconfig("reviews", server.url)
        flags = (
            f"--authentication-kubeconfig={reviews}",
            f"--authorization-kubeconfig={reviews}",
            "--leader-elect=false",
        )
        async with scheduler_process(server, "default-scheduler", *flags) as scheduler:
            for family in FAMILIES:
                found = 0
                for scenario, verdict in _chosen(family):
                    if found < OF_EACH and await _is_as_recorded(server, scheduler, scenario, verdict):
                        counted.append(scenario["id"])
                        found += 1
    return counted


def _chosen(family: str) -> Iterator[tuple[Json, Json]]:
    """Small scenarios with kube-scheduler's own configuration."""
    looked_at = 0
    for scenario, verdict in recorded(family, 0, 1):
        is_small = not scenario["config"] and len(scenario["objects"]) <= OBJECTS_MAX
        if is_small and "results" in verdict and looked_at < LOOKED_AT_MAX:
            looked_at += 1
            yield scenario, verdict["results"][0]


async def _is_as_recorded(server: ApiServer, scheduler: SchedulerProcess, scenario: Json, wanted: Json) -> bool:
    """False if the scenario cannot be had here; asserts that it ends as recorded if it can."""
    made: list[tuple[Kind, str, str]] = []
    try:
        for document in scenario["objects"]:
            made.append(await _make(server, document))
        pending = scenario["pods"][0]
        objects = [msgspec.json.decode(await server.client.get(*place)) for place in made]
        expected = verdicts.verdict({"id": "here", "config": None, "objects": objects, "pods": [pending]})
        if expected.get("results") != [wanted]:
            return False
        best, message = _ending(wanted)
        # The scheduler may hear of the pod before it has heard of all else: then the pod comes once more.
        end_s = server.clock.now_s() + LIMIT_S
        while (found := await _decided_about(server, pending)) not in (best or {message}):
            assert server.clock.now_s() < end_s, f"{scenario['id']}: {found}, wanted {best or message}"
        return True
    except StatusError:
        return False  # the API server does not take it
    finally:
        await _remove(server, scheduler, made)


def _ending(wanted: Json) -> tuple[set[str], str]:
    """The nodes of which one must be chosen; or the message of the pod."""
    if wanted["chosen"] is None:
        return set(), wanted["message"]
    totals = {node: scores["total"] for node, scores in (wanted["scores"] or {}).items()}
    highest = max(totals.values(), default=0)
    return {node for node, total in totals.items() if total == highest} or {wanted["chosen"]}, ""


async def _make(server: ApiServer, document: Json) -> tuple[Kind, str, str]:
    kind = kind_named(document["apiVersion"], document["kind"])
    metadata = {name: value for name, value in document["metadata"].items() if name not in ("uid", "resourceVersion")}
    place = (kind, metadata.get("namespace", ""), metadata["name"])
    with suppress(AlreadyExistsError):  # a namespace that every cluster has
        await server.client.create(kind, place[1], {**document, "metadata": metadata})
    if kind.kind == "Node":
        taints = document.get("spec", {}).get("taints")
        await server.client.patch(kind, "", place[2], {"spec": {"taints": taints}}, form=PatchForm.MERGE)
    return place


async def _decided_about(server: ApiServer, pending: Json) -> str:
    """Where a pod went that came and is gone again, or why it went nowhere."""
    place = await _make(server, pending)
    try:
        return await _decided(server, place)
    finally:
        await server.client.delete(*place, Deletion(grace_s=0))


async def _decided(server: ApiServer, place: tuple[Kind, str, str]) -> str:
    found: list[str] = []

    async def is_decided() -> bool:
        pod = msgspec.json.decode(await server.client.get(*place))
        conditions = pod.get("status", {}).get("conditions", ())
        messages = [condition.get("message", "") for condition in conditions if condition["type"] == "PodScheduled"]
        found[:] = [pod["spec"].get("nodeName") or "".join(messages)]
        return bool(found[0])

    await server.wait_until(is_decided, f"{place[2]} is decided about")
    return found[0]


async def _remove(server: ApiServer, scheduler: SchedulerProcess, made: list[tuple[Kind, str, str]]) -> None:
    for kind, namespace, name in reversed(made):
        if kind.kind == "Namespace":
            continue
        with suppress(NotFoundError):
            await server.client.delete(kind, namespace, name, Deletion(grace_s=0 if kind is POD else None))

    async def is_forgotten() -> bool:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        url = f"https://127.0.0.1:{scheduler.port}/debug/cache"
        try:
            async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=False) as answer:
                counts = json.loads(await answer.text())["counts"]
        except (aiohttp.ClientError, ClientError):
            return False  # it is still starting
        return bool(counts["nodes"] == counts["pods"] == 0)

    await server.wait_until(is_forgotten, "the scheduler has forgotten the cluster")
