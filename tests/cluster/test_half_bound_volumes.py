"""A scheduler is killed while volumes are half bound, and the next one goes on from what the API server knows.

Nobody binds claims or makes volumes here but the test itself. So the first scheduler gets as far as its writes, and
waits for ever; where a write is kept back it does not even get that far. While no scheduler runs, everything is done to
lead the next scheduler astray: a better node, smaller volumes there and at home, no nomination any more. What was
written has to win; the pod that comes only then, and one whose provisioner gave up, show that the temptation is real.

Each claim has a class of its own. Of the volumes of a claim `c`, `c-home` is there from the beginning, `c-spare` (at
home, too) and `c-away` come later, and `c-made` is what a provisioner makes.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import msgspec

from mooring.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, STORAGE_CLASS, Kind
from mooring.api.storage import NO_PROVISIONER, SELECTED_NODE
from mooring.client.interface import PatchForm
from mooring.kit.loop import run_real
from tests.cluster.fault_proxy import FaultProxy
from tests.cluster.processes import TOKEN, ApiServer, api_server, scheduler_process
from tests.controllers.cluster_builders import BOUND, claim, storage_class, volume

HALF_BOUND = {
    "given": ["given"],
    "ordered": ["ordered"],
    "between-volumes": ["first", "second"],
    "between-kinds": ["found", "made"],
    "confirmed-meanwhile": ["confirmed"],
    "refused-meanwhile": ["refused"],
}
"""The claims of each pod that the first scheduler began with."""
MADE = ("ordered", "made", "refused")
"""Claims for which a volume has to be made; the last one is given up by its provisioner."""
KEPT_BACK = frozenset(
    (
        "PATCH /api/v1/persistentvolumes/second-home",
        "PATCH /api/v1/namespaces/default/persistentvolumeclaims/made",
    )
)
ENDS_WITH = {
    "given-home": "given",
    "ordered-made": "ordered",
    "first-home": "first",
    "second-spare": "second",  # nothing had been written: the smallest one at home, now
    "found-home": "found",
    "made-made": "made",
    "confirmed-home": "confirmed",
    "refused-away": "refused",
    "late-away": "late",
}
"""Which volume belongs to which claim."""
GOES_AWAY = ("refused-meanwhile", "late")
NAME = "volumes"


def test_what_was_half_bound_is_bound_by_the_next_scheduler(tmp_path: Path) -> None:
    async def main() -> None:
        async with api_server(tmp_path) as server:
            await server.add_node("home")
            for pod, claims in HALF_BOUND.items():
                for each in claims:
                    await _add_claim(server, each)
                await server.add_pod(pod, NAME, claims=claims)
            await _a_scheduler_dies_half_way(server)
            await _the_world_goes_on(server)
            async with scheduler_process(server, "second", "--leader-elect=false", profile=NAME) as scheduler:
                await _is_where_it_was(server)
                await _volumes_are_made_and_bound(server)
                await server.wait_bound("", len(HALF_BOUND) + 2)
                assert "Traceback" not in scheduler.log
            at_home = dict.fromkeys(("filler", *HALF_BOUND), "home")
            assert await server.nodes_of("") == at_home | dict.fromkeys(GOES_AWAY, "away")
            assert await _reservations(server) == ENDS_WITH

    run_real(main())


async def _a_scheduler_dies_half_way(server: ApiServer) -> None:
    async with FaultProxy(server.url, TOKEN) as proxy:
        proxy.kept_back = KEPT_BACK
        kubeconfig = server.kubeconfig("first", proxy.url)
        started = scheduler_process(server, "first", "--leader-elect=false", kubeconfig=kubeconfig, profile=NAME)
        written = {f"{each}-home": each for each in ("given", "first", "found", "confirmed")}
        async with started as scheduler:

            async def is_half_done() -> bool:
                is_ordered = [await _node_of_claim(server, each) for each in MADE] == ["home", "", "home"]
                return is_ordered and await _reservations(server) == written and proxy.has_kept_back == KEPT_BACK

            await server.wait_until(is_half_done, "the first scheduler has written what it can")
            scheduler.signal(signal.SIGKILL)
            await scheduler.wait_end()
    assert set((await server.nodes_of("")).values()) == {""}


async def _the_world_goes_on(server: ApiServer) -> None:
    await _bind(server, "confirmed", "confirmed-home")
    given_up = {"metadata": {"annotations": {SELECTED_NODE: None}}}
    await server.client.patch(PERSISTENT_VOLUME_CLAIM, "default", "refused", given_up, form=PatchForm.MERGE)
    await server.add_pod("filler", "somebody-else", cpu="7", node="home")
    await server.add_node("away")
    for claims in HALF_BOUND.values():
        for each in claims:
            if each != "made":  # its order was never written: a volume that exists would rightly be taken
                await _add_volume(server, f"{each}-spare", each, "home", "2Gi")
            await _add_volume(server, f"{each}-away", each, "away", "2Gi")
    for pod in HALF_BOUND:
        # It would be enough to bring the pod home: here the volumes alone have to.
        forgotten = {"status": {"nominatedNodeName": None}}
        await server.client.patch(POD, "default", pod, forgotten, form=PatchForm.MERGE, subresource="status")
    await _add_claim(server, "late")
    await _add_volume(server, "late-away", "late", "away", "2Gi")
    await server.add_pod("late", NAME, claims=["late"])


async def _is_where_it_was(server: ApiServer) -> None:
    """The next scheduler says where each pod is going, and waits: for the same volumes, and for those that are made."""
    waiting = dict.fromkeys(HALF_BOUND, "home") | dict.fromkeys(GOES_AWAY, "away")
    del waiting["confirmed-meanwhile"]
    written = {name: of for name, of in ENDS_WITH.items() if not name.endswith("-made")}

    async def has_gone_on() -> bool:
        is_written = await _reservations(server) == written and await _node_of_claim(server, "made") == "home"
        return is_written and await _nominations(server) == waiting

    await server.wait_until(has_gone_on, "the second scheduler goes on where the first one was")
    await server.wait_bound("confirmed-", 1)
    bound = {"confirmed-meanwhile": "home", "filler": "home"}
    assert await server.nodes_of("") == {**dict.fromkeys(waiting, ""), **bound}
    assert await _node_of_claim(server, "ordered") == "home"


async def _volumes_are_made_and_bound(server: ApiServer) -> None:
    """As the controller of volumes and a provisioner would."""
    for each in ("ordered", "made"):
        uid = (await _read(server, PERSISTENT_VOLUME_CLAIM, each))["metadata"]["uid"]
        await _add_volume(server, f"{each}-made", each, "home", "1Gi", claim=each, uid=uid)
    for name, of in ENDS_WITH.items():
        if of != "confirmed":
            await _bind(server, of, name)


async def _add_claim(server: ApiServer, name: str) -> None:
    """With its class, and a volume at home if it is not one that has to be made."""
    provisioner = "example.com/disk" if name in MADE else NO_PROVISIONER
    await server.client.create(STORAGE_CLASS, "", storage_class(name, provisioner=provisioner, waits=True))
    if name not in MADE:
        await _add_volume(server, f"{name}-home", name, "home", "10Gi")
    size = "2Gi" if name == "second" else "1Gi"  # smaller claims are written first
    await server.client.create(PERSISTENT_VOLUME_CLAIM, "default", claim(name, storage=size, class_name=name))


async def _add_volume(server: ApiServer, name: str, class_name: str, node: str, size: str, **parts: Any) -> None:
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
    reach = {"required": {"nodeSelectorTerms": terms}}
    document = volume(name, storage=size, class_name=class_name, nodeAffinity=reach, **parts)
    await server.client.create(PERSISTENT_VOLUME, "", document)
    available = {"status": {"phase": "Available"}}
    await server.client.patch(PERSISTENT_VOLUME, "", name, available, form=PatchForm.MERGE, subresource="status")


async def _bind(server: ApiServer, claim_name: str, volume_name: str) -> None:
    patch = {"metadata": {"annotations": BOUND}, "spec": {"volumeName": volume_name}}
    await server.client.patch(PERSISTENT_VOLUME_CLAIM, "default", claim_name, patch, form=PatchForm.MERGE)


async def _reservations(server: ApiServer) -> dict[str, str]:
    """The claim that each volume names, if it does."""
    volumes = [msgspec.json.decode(raw) for raw in (await server.client.list(PERSISTENT_VOLUME)).items]
    return {
        each["metadata"]["name"]: each["spec"]["claimRef"]["name"] for each in volumes if "claimRef" in each["spec"]
    }


async def _nominations(server: ApiServer) -> dict[str, str]:
    pods = [msgspec.json.decode(raw) for raw in (await server.client.list(POD)).items]
    nominated = {each["metadata"]["name"]: each["status"].get("nominatedNodeName", "") for each in pods}
    return {pod: node for pod, node in nominated.items() if node}


async def _node_of_claim(server: ApiServer, name: str) -> str:
    annotations = (await _read(server, PERSISTENT_VOLUME_CLAIM, name))["metadata"].get("annotations", {})
    return str(annotations.get(SELECTED_NODE, ""))


async def _read(server: ApiServer, kind: Kind, name: str) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(await server.client.get(kind, "default", name))
    return found
