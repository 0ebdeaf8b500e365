"""One run of `mooring parity`: loads clusters into an API server without components, and lets both schedulers decide.

1. Pods are decided one by one. Before a pod is created, both schedulers see the same objects: those of the API server.
   Our engine decides, kube-scheduler decides, and what kube-scheduler did is what the next pod finds.
2. A pod that kube-scheduler does not place is deleted, and so are its victims: no pod is tried again while others are
   compared.
3. Of a live cluster only lists are read. Nothing is written to it.

With `--record`, each pod is also written with the objects that both schedulers saw, in the format that `tests/golden`
replays:

4. Each pod is a scenario of its own, so that a replay does not depend on the binary's random choices for earlier pods.
5. A binary does not tell everything: rejections are known as a message only, and a single feasible node has no scores.
   `recorded` in a result names the fields that a replay compares.
6. Of several best nodes, `chosen` is the one whose name comes first, as in the other recordings; the binary chooses at
   random.
7. Each verdict names the version of the binary.
"""

from __future__ import annotations

import lzma
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, BinaryIO, Self

import msgspec

from mooring.api import kinds
from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.api.views.pod import Pod
from mooring.api.well_known import DEFAULT_SCHEDULER_NAME, TERMINAL_PHASES
from mooring.apiserver.server import ApiServer
from mooring.cli.cluster_source.live import connect
from mooring.cli.errors import InputError, input_error
from mooring.cli.manifests.read import find_sources, read_objects
from mooring.cli.parity.compare import DEVICES_MINOR, TOTAL, Difference, Observed, Tally, compare_pod
from mooring.cli.parity.generate import random_cluster
from mooring.cli.parity.kube_scheduler import (
    CONFIGURATION,
    BinaryVersion,
    KubeScheduler,
    KubeSchedulerError,
    version_of,
)
from mooring.cli.terminal import counted
from mooring.client.errors import ClientError, ForbiddenError, NotFoundError
from mooring.client.http.client import HttpClient
from mooring.client.interface import Client, Deletion
from mooring.cluster.clone import clone
from mooring.cluster.cluster import ClusterError, run_cluster
from mooring.cluster.objects import loopback_client, without_server_fields
from mooring.cluster.settings import COMPONENTS, ClusterSettings
from mooring.kit.build import KUBERNETES_VERSION
from mooring.kit.clock import Clock, VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run_real
from mooring.kit.tasks import errors_in
from mooring.kit.temporary_directory import temporary_directory
from mooring.scheduler.config import load_configuration
from mooring.scheduler.engine import Engine

Note = Callable[[str], None]

DECIDE_S_MAX = 60.0
"""A pod without a decision after this time is reported as undecided."""
VICTIMS_S_MAX = 10.0
"""How long kube-scheduler may take to delete the victims that our engine names."""
CHECK_S = 0.01
FAILURES_SHOWN_MAX = 5
READ_KINDS = (
    kinds.NAMESPACE,
    kinds.NODE,
    kinds.POD,
    kinds.SERVICE,
    kinds.REPLICATION_CONTROLLER,
    kinds.REPLICA_SET,
    kinds.STATEFUL_SET,
    kinds.PERSISTENT_VOLUME,
    kinds.PERSISTENT_VOLUME_CLAIM,
    kinds.STORAGE_CLASS,
    kinds.CSI_NODE,
    kinds.CSI_DRIVER,
    kinds.CSI_STORAGE_CAPACITY,
    kinds.VOLUME_ATTACHMENT,
    kinds.RESOURCE_CLAIM,
    kinds.RESOURCE_SLICE,
    kinds.DEVICE_CLASS,
    kinds.POD_DISRUPTION_BUDGET,
    kinds.PRIORITY_CLASS,
)
"""What scheduling depends on."""
WRITTEN_KINDS = (kinds.PERSISTENT_VOLUME, kinds.PERSISTENT_VOLUME_CLAIM, kinds.RESOURCE_CLAIM)
"""What a scheduler writes besides pods."""


@dataclass(frozen=True, slots=True)
class ParityOptions:
    """The options of the command."""

    binary: str
    files: tuple[str, ...] = ()
    kubeconfig: str = ""
    context: str = ""
    random: int = 0
    seed: int = 1
    record: str = ""


@dataclass(slots=True)
class Parity:
    """The outcome."""

    version: BinaryVersion
    tally: Tally
    clusters: int = 0
    pods: int = 0
    undecided: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    """Pods by the reason why they were not compared."""

    @property
    def is_same(self) -> bool:
        return not self.tally.unexplained and not self.undecided


def run_parity(options: ParityOptions, stdin: BinaryIO, note: Note, clock: Clock) -> Parity:
    """Compares all pending pods of all clusters. Raises `InputError`."""
    version = version_of(options.binary)
    result = Parity(version, Tally(version))
    try:
        with VerdictRecorder(options.record, version) if options.record else nullcontext() as recorder:
            for seed, documents in _clusters(options, stdin, clock):
                if seed is not None:
                    note(f"cluster of seed {seed}")
                run_real(_ParityRun(options, result, clock, recorder, seed).compare(documents))
                result.clusters += 1
    except (KubeSchedulerError, ClusterError) as error:
        raise input_error(str(error)) from error
    except ExceptionGroup as group:
        known = group.subgroup((KubeSchedulerError, InputError))
        if known is None:
            raise
        raise input_error(str(next(errors_in(known)))) from group
    if not result.pods:
        left = "; ".join(f"{count} {reason}" for reason, count in result.left_out.items())
        raise input_error(f"found no pending pods to compare{f' ({left})' if left else ''}")
    return result


def _clusters(options: ParityOptions, stdin: BinaryIO, clock: Clock) -> Iterator[tuple[int | None, list[Document]]]:
    """The clusters of the options, with the seed if they are generated."""
    if options.random:
        for number in range(options.random):
            seed = options.seed + number
            yield seed, random_cluster(Entropy(seed, "parity"))
    elif options.files:
        yield None, [entry.document for entry in read_objects(find_sources(options.files), stdin)]
    else:
        yield None, run_real(_read_live(options, clock))


async def _read_live(options: ParityOptions, clock: Clock) -> list[Document]:
    connection = connect(options.kubeconfig, options.context, clock)
    documents: list[Document] = []
    async with HttpClient(connection, clock, Entropy(options.seed), component="parity") as client:
        for kind in READ_KINDS:
            try:
                items = (await client.list(kind)).items
            except NotFoundError:
                continue  # an older server without this kind
            except ForbiddenError as error:
                raise input_error(f"parity must list {kind.plural} of {connection.server}: {error}") from error
            except ClientError as error:
                raise input_error(f"{connection.server}: {error}") from error
            for raw in items:
                documents.append(_document(kind, raw))
    return documents


class _ParityRun:
    """One cluster."""

    def __init__(
        self, options: ParityOptions, result: Parity, clock: Clock, recorder: VerdictRecorder | None, seed: int | None
    ) -> None:
        self._options = options
        self._recorder = recorder
        self._seed = seed
        self._result = result
        self._clock = clock
        self._engine = Engine(
            load_configuration(CONFIGURATION),
            entropy=Entropy(options.seed),
            services={"clock": VirtualClock(wall_s=clock.wall_s())},
        )

    async def compare(self, documents: Sequence[Document]) -> None:
        async def fill(api_server: ApiServer) -> None:
            report = await clone(api_server, documents)
            if report.failures:
                shown = "\n".join(report.failures[:FAILURES_SHOWN_MAX])
                raise input_error(f"the API server rejects {len(report.failures)} objects:\n{shown}")

        with temporary_directory("mooring-parity-") as directory:
            settings = ClusterSettings(
                port=0,
                without=frozenset(COMPONENTS),
                kubeconfig=directory / "kubeconfig",
                has_default_storage_class=False,
            )
            entropy = Entropy(self._options.seed, "parity server")
            async with run_cluster(settings, self._clock, entropy, fill) as cluster:
                client = loopback_client(cluster.api_server)
                pending = await self._take_pending(client)
                await self._load(client, READ_KINDS)
                if not pending:
                    return
                async with KubeScheduler(
                    self._options.binary, directory / "kubeconfig", directory, self._clock
                ) as scheduler:
                    for pod in pending:
                        await self._compare_pod(client, scheduler, pod)

    async def _take_pending(self, client: Client) -> list[Document]:
        """Removes the pending pods from the API server; they come back one by one, in the order of the queue."""
        pending: list[Document] = []
        for raw in (await client.list(kinds.POD)).items:
            document, pod = msgspec.json.decode(raw), decode_as(Pod, raw)
            if pod.spec.node_name or pod.status.phase in TERMINAL_PHASES:
                continue
            if reason := _reason_to_leave_out(pod, self._result.version):
                self._result.left_out[reason] += 1
            else:
                pending.append(document)
            await client.delete(kinds.POD, pod.metadata.namespace, pod.metadata.name, Deletion(grace_s=0))
        pending.sort(key=lambda document: -(document["spec"].get("priority") or 0))
        return pending

    async def _load(self, client: Client, of_kinds: Iterable[Kind]) -> None:
        for kind in of_kinds:
            assert kind.view is not None, f"{kind.kind} has no view"
            for raw in (await client.list(kind)).items:
                self._engine.put(decode_as(kind.view, raw))

    async def _compare_pod(self, client: Client, scheduler: KubeScheduler, original: Document) -> None:
        metadata = without_server_fields(original["metadata"])
        namespace, name = metadata["namespace"], metadata["name"]
        key = f"{namespace}/{name}"
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": original["spec"]}
        placed = await _placed_pods(client)
        before = await _documents(client) if self._recorder is not None else []
        written = await client.create(kinds.POD, namespace, body)
        created = decode_as(Pod, written)

        def compare(observed: Observed, ranks: Mapping[str, tuple[int, str]]) -> None:
            compare_pod(self._result.tally, key, observed, decision, ranks)
            if self._recorder is not None:
                self._recorder.add(self._seed, before, msgspec.json.decode(written), key, observed)

        decision = self._engine.decide(self._engine.record(created), in_full=True)
        self._result.pods += 1
        pod = await self._outcome(client, scheduler, namespace, name)
        if pod is None:
            self._result.undecided.append(key)
        elif pod.spec.node_name:
            feasible, scores = await scheduler.scores_of(key)
            observed = Observed(node=pod.spec.node_name, feasible=feasible, scores=scores)
            compare(observed, {})
            self._engine.put(pod)
            if pod.spec.volumes or pod.spec.resource_claims:
                await self._load(client, WRITTEN_KINDS)
            return
        victims: list[Pod] = []
        if pod is not None:
            expected = {victim.key for victim in decision.preemption.victims} if decision.preemption else set()
            if pod.status.nominated_node_name:
                victims = await self._victims(client, expected)
            ranks = {
                placed_pod.key: (placed_pod.spec.priority or 0, placed_pod.status.start_time or "")
                for placed_pod in placed
            }
            observed = Observed(
                message=_message(pod),
                nominated=pod.status.nominated_node_name,
                victims=tuple(sorted(victim.key for victim in victims)),
                victims_rank=tuple(sorted(ranks[victim.key] for victim in victims)),
            )
            compare(observed, ranks)
        for gone in (created, *victims):
            await client.delete(kinds.POD, gone.metadata.namespace, gone.metadata.name, Deletion(grace_s=0))
            self._engine.remove(gone)
        scheduler.forget(key)

    async def _outcome(self, client: Client, scheduler: KubeScheduler, namespace: str, name: str) -> Pod | None:
        """The pod when it has a node or the reason why not; None after `DECIDE_S_MAX`."""
        deadline_s = self._clock.now_s() + DECIDE_S_MAX
        while self._clock.now_s() < deadline_s:
            scheduler.check_runs()
            pod = decode_as(Pod, await client.get(kinds.POD, namespace, name))
            if pod.spec.node_name or _message(pod):
                return pod
            await self._clock.wait(CHECK_S)
        return None

    async def _victims(self, client: Client, expected: set[str]) -> list[Pod]:
        """The pods that are being deleted, when they are those that our engine names or `VICTIMS_S_MAX` is over."""
        deadline_s = self._clock.now_s() + VICTIMS_S_MAX
        while True:
            found = [pod for pod in await _placed_pods(client) if pod.metadata.deletion_timestamp is not None]
            if {pod.key for pod in found} == expected or self._clock.now_s() > deadline_s:
                return found
            await self._clock.wait(CHECK_S)


async def _documents(client: Client) -> list[Document]:
    """All objects that scheduling depends on."""
    found: list[Document] = []
    for kind in READ_KINDS:
        for raw in (await client.list(kind)).items:
            found.append(_document(kind, raw))
    return found


def _document(kind: Kind, raw: bytes) -> Document:
    """An item of a list, which has no apiVersion and kind."""
    document: Document = msgspec.json.decode(raw)
    return {**document, "apiVersion": kind.api_version, "kind": kind.kind}


async def _placed_pods(client: Client) -> list[Pod]:
    pods = [decode_as(Pod, raw) for raw in (await client.list(kinds.POD)).items]
    return [pod for pod in pods if pod.spec.node_name]


def _message(pod: Pod) -> str:
    """The message of the condition PodScheduled if it is False. It is that of the event, which is cut at 1 KiB."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message
    return ""


def _reason_to_leave_out(pod: Pod, version: BinaryVersion) -> str:
    if pod.spec.scheduler_name not in ("", DEFAULT_SCHEDULER_NAME):
        return "name another scheduler"
    if pod.spec.scheduling_gates:
        return "have scheduling gates"
    if pod.spec.resource_claims and version.minor < DEVICES_MINOR:
        return f"have resource claims, which kube-scheduler ignores by default before v1.{DEVICES_MINOR}"
    if any(claim.resource_claim_template_name for claim in pod.spec.resource_claims):
        return "wait for a controller to create their ResourceClaims"
    if any(volume.ephemeral is not None for volume in pod.spec.volumes):
        return "wait for a controller to create their PersistentVolumeClaims"
    return ""


# --- the outcome ----------------------------------------------------------------------------------------------


def as_json(parity: Parity) -> str:
    tally = parity.tally
    data = {
        "kubeScheduler": parity.version.text,
        "mooringFollows": KUBERNETES_VERSION,
        "clusters": parity.clusters,
        "pods": parity.pods,
        "leftOut": dict(parity.left_out),
        "undecided": parity.undecided,
        "compared": {part: tally.compared[part] for part in tally.parts()},
        "differences": msgspec.to_builtins(tally.differences),
    }
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode() + "\n"


def as_lines(parity: Parity) -> Iterator[str]:
    tally = parity.tally
    clusters, pods = counted(parity.clusters, "cluster"), counted(parity.pods, "pod")
    yield f"kube-scheduler {parity.version.text}, {clusters}, {pods}"
    for reason, count in parity.left_out.items():
        yield f"not compared: {count} pods that {reason}"
    rows = [("", "compared", "different", "by version")]
    rows += [
        (
            part,
            f"{tally.compared[part]:,}",
            f"{tally.differing(part, is_explained=False):,}",
            f"{tally.differing(part, is_explained=True):,}",
        )
        for part in tally.parts()
    ]
    width = max(len(row[0]) for row in rows)
    for part, compared, different, by_version in rows:
        yield f"{part:<{width}}  {compared:>10}  {different:>9}  {by_version:>10}"
    for reason in dict.fromkeys(difference.explained for difference in tally.differences if difference.explained):
        yield f"by version: {reason}"
    for pod in parity.undecided:
        yield f"kube-scheduler did not decide about {pod}"
    if tally.unexplained:
        yield ""
        yield from _difference_lines(tally.unexplained[0])
        if not parity.version.text.startswith(f"{_minor(KUBERNETES_VERSION)}."):
            yield f"Mooring decides as {KUBERNETES_VERSION}; kube-scheduler is {parity.version.text}"
    elif parity.is_same:
        yield "no difference"


def _difference_lines(difference: Difference) -> Iterator[str]:
    where = f" on node {difference.node}" if difference.node else ""
    yield f"first difference: {difference.part} of pod {difference.pod}{where}"
    yield f"  kube-scheduler: {difference.kube_scheduler}"
    yield f"  mooring:        {difference.mooring}"


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


# --- recordings -----------------------------------------------------------------------------------------------


_encode = msgspec.json.Encoder().encode


class VerdictRecorder:
    """Writes a recording, inside of a `with`. What was written before an interruption can be replayed."""

    def __init__(self, name: str, version: BinaryVersion) -> None:
        self._name = name
        self._version = version
        self._stack = ExitStack()
        self._count = 0

    def __enter__(self) -> Self:
        try:
            self._scenarios = self._open("scenarios")
            self._verdicts = self._open("verdicts")
        except OSError as error:
            self._stack.close()
            raise input_error(f"--record {self._name}: cannot write {error.filename}: {error.strerror}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def add(self, seed: int | None, objects: Sequence[Document], pod: Document, key: str, observed: Observed) -> None:
        """One pod, and the objects before it was created."""
        self._count += 1
        head = {"id": f"{Path(self._name).name}-{self._count:06}"}
        scenario = {**head, "seed": seed, "config": CONFIGURATION, "objects": objects, "pods": [pod]}
        verdict = {**head, "version": self._version.text, "results": [result_of(key, observed)]}
        self._scenarios.write(_encode(scenario) + b"\n")
        self._verdicts.write(_encode(verdict) + b"\n")

    def _open(self, what: str) -> IO[bytes]:
        return self._stack.enter_context(lzma.open(f"{self._name}.{what}.jsonl.xz", "wb"))


def result_of(key: str, observed: Observed) -> Document:
    """What the binary did with a pod."""
    recorded = ["chosen", "message", "preemption"]
    result: Document = {
        "pod": key,
        "chosen": _first_of_best(observed) or None,
        "message": observed.message or None,
        "preemption": None,
    }
    if observed.feasible > 1:
        recorded.append("scores")
        result["scores"] = {
            node: {**scores, TOTAL: sum(scores.values())} for node, scores in sorted(observed.scores.items())
        }
    if observed.nominated:
        result["preemption"] = {"nominated": observed.nominated, "victims": list(observed.victims)}
    return {**result, "recorded": recorded}


def _first_of_best(observed: Observed) -> str:
    totals = {node: sum(scores.values()) for node, scores in observed.scores.items()}
    if observed.node not in totals or totals[observed.node] < max(totals.values()):
        return observed.node
    return min(node for node, total in totals.items() if total == totals[observed.node])
