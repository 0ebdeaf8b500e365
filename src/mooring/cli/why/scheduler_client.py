"""Reads the pages /debug/decisions and /debug/queue of a scheduler, and explains one node from the state of the API.

1. The pages are read through the API server of the kubeconfig (`mooring up` serves them there), or from the secure port
   of a scheduler with the credentials of the kubeconfig.
2. `obstacles_on` reads the cluster as `mooring explain` does, and runs every filter on the node.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from mooring.cli.cluster_source.assemble import (
    SourceOptions,
    assemble,
    build_engine,
    chosen_pod,
    pending_pods,
)
from mooring.cli.cluster_source.live import connect
from mooring.cli.errors import input_error
from mooring.cli.manifests.read import Manifests
from mooring.cli.options import SchedulerAddress
from mooring.client.errors import ClientError, ForbiddenError, NotFoundError
from mooring.client.http.client import HttpClient
from mooring.client.http.connection import Connection
from mooring.client.http.dial import UNTRUSTED, TlsError
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run_real
from mooring.scheduler.cycle.explain import explain
from mooring.scheduler.pages import UNKNOWN_POD
from mooring.scheduler.reporting.decision_log import DecisionLogError, read_log

PAGE_S_MAX = 30.0
SEED = 1
LOGGED_MAX = 1_000
NEAREST_SHOWN = 5

Rows = list[dict[str, Any]]


class SchedulerClient:
    """Asks one scheduler. Raises `InputError`."""

    def __init__(self, kubeconfig: str, context: str, address: SchedulerAddress, clock: Clock) -> None:
        connection = connect(kubeconfig, context, clock)
        self.namespace = connection.namespace or "default"
        self._connection = _connection_to(address, connection) if address.url else connection
        self._is_standalone = bool(address.url)
        self._clock = clock

    def decisions(self, pod: str) -> Rows:
        """The attempts for a pod, the latest first."""
        found: Rows = self._page("/debug/decisions", pod=pod)
        return found

    def queue(self, pod: str) -> Rows:
        """The rows of the queue about a pod, with the nodes that are nearest to taking it."""
        found: Rows = self._page("/debug/queue", pod=pod, nearest=str(NEAREST_SHOWN))["pods"]
        return found

    def whole_queue(self) -> dict[str, Any]:
        found: dict[str, Any] = self._page("/debug/queue")
        return found

    def _page(self, path: str, **query: str) -> Any:
        target = f"{path}?{urlencode(query)}" if query else path
        try:
            return json.loads(run_real(self._read(target)))
        except NotFoundError:
            raise input_error(
                f"{self._connection.server} has no page {path}: it is no API server of mooring up; name the secure port"
                " of a Mooring scheduler with --scheduler, or use mooring explain, which needs none"
            ) from None
        except ForbiddenError as error:
            raise input_error(f"{error}; a role needs nonResourceURLs: [{path}], verbs: [get]") from None
        except (ClientError, TlsError, ValueError) as error:
            advice = ""
            if self._is_standalone and UNTRUSTED in str(error):
                advice = "; name its CA with --certificate-authority, or trust it with --insecure-skip-tls-verify"
            raise input_error(f"cannot ask {self._connection.server}: {error}{advice}") from None

    async def _read(self, target: str) -> bytes:
        async with HttpClient(self._connection, self._clock, Entropy(SEED), component="why") as client:
            return await client.read_page(target, PAGE_S_MAX)


def _connection_to(address: SchedulerAddress, connection: Connection) -> Connection:
    """The secure port of a scheduler, with the credentials of the kubeconfig."""
    authority, is_unverified = connection.authority, connection.is_server_unverified
    if address.authority_file:
        try:
            authority, is_unverified = Path(address.authority_file).read_bytes(), False
        except OSError as error:
            raise input_error(f"{address.authority_file}: {error.strerror}") from None
    if address.is_unverified:
        authority, is_unverified = b"", True
    return dataclasses.replace(
        connection,
        server=address.url.rstrip("/"),
        authority=authority,
        is_server_unverified=is_unverified,
        server_name="",
    )


def is_known(decisions: Rows, rows: Rows) -> bool:
    """Whether the scheduler has an attempt for the pod, or has the pod."""
    return bool(decisions) or any(row["state"] != UNKNOWN_POD for row in rows)


def logged_decisions(path: str, pod: str) -> Rows:
    """The attempts for a pod in a decision log, the latest first."""
    try:
        return [record.document() for record in read_log(Path(path), pod, LOGGED_MAX)]
    except DecisionLogError as error:
        raise input_error(str(error)) from error


def obstacles_on(pod_name: str, node: str, kubeconfig: str, context: str, clock: Clock) -> dict[str, Any]:
    """Everything that keeps a pending pod from a node now."""
    engine = build_engine(None, (), SEED, clock.wall_s(), _ignore)
    options = SourceOptions(kubeconfig=kubeconfig, context=context)
    source = assemble(Manifests(), options, now_s=clock.wall_s(), clock=clock, note=_ignore)
    pod = chosen_pod(pod_name, source.cluster, source.namespace)
    if pod.spec.node_name:
        raise input_error(f"pod {pod.key} is on node {pod.spec.node_name}; mooring why {pod.key} shows its attempts")
    for view in (*source.cluster.objects, *source.cluster.placed):
        engine.put(view)
    pending_pods(engine, source.cluster.pending)  # nominates those with a nominated node
    if node not in engine.columns.row_of:
        raise input_error(f'found no node "{node}"')
    record = engine.record(pod)
    if not engine.is_responsible_for(record):
        raise input_error(f"pod {pod.key} waits for scheduler {pod.spec.scheduler_name}")
    found = explain(engine.cycle_for(record).profile, engine.columns, record)
    obstacles = [*found.everywhere, *found.at(node)]
    return {
        "pod": pod.key,
        "node": node,
        "obstacles": [obstacle.document() for obstacle in obstacles],
    }


def _ignore(text: str) -> None:
    """Notes about the input say nothing about one node."""
