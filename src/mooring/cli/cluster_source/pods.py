"""The pods of the cluster that a command asks about: by name, and in the order of the queue."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from mooring.api.views.pod import Pod
from mooring.cli.cluster_source.cluster_input import ClusterInput
from mooring.cli.errors import input_error
from mooring.kit.clock import parse_rfc3339
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.engine import Engine

MATCHES_SHOWN_MAX = 5
_NEVER_S = float("inf")


def in_queue_order(pods: Iterable[Pod]) -> list[Pod]:
    """By priority, then by creation time; pods without one last."""

    def place(pod: Pod) -> tuple[int, float]:
        created = pod.metadata.creation_timestamp
        return -(pod.spec.priority or 0), parse_rfc3339(created) if created is not None else _NEVER_S

    return sorted(pods, key=place)  # sorting keeps the order of those that are equal


def pending_pods(engine: Engine, pods: Iterable[Pod]) -> list[PodInfo]:
    """The records of pending pods, in queue order. Those with a nominated node are nominated."""
    records = [engine.record(pod) for pod in in_queue_order(pods)]
    for record in records:
        if record.nominated_node and not record.terminating and engine.is_responsible_for(record):
            engine.columns.nominate(record, record.nominated_node)
    return records


def chosen_pod(wanted: str, cluster: ClusterInput, namespace: str) -> Pod:
    """The pod that a name, or NAMESPACE/NAME, means; of several with that name the one in `namespace`. Raises
    `InputError`."""
    pods = cluster.pods()
    matching = [pod for pod in pods if wanted in (pod.metadata.name, pod.key)]
    if len(matching) > 1:
        matching = [pod for pod in matching if pod.metadata.namespace == namespace] or matching
    if len(matching) == 1:
        return matching[0]
    if matching:
        keys = ", ".join(sorted(pod.key for pod in matching))
        raise input_error(f'found several pods named "{wanted}"; say which one: {keys}')
    near = _near(wanted, pods)
    advice = f"did you mean {' or '.join(near)}?" if near else _pods(pods)
    raise input_error(f'found no pod "{wanted}"; {advice}')


def _near(wanted: str, pods: Sequence[Pod]) -> list[str]:
    """Pods with almost that name: typing errors first, then names that contain it."""
    keys_of: dict[str, list[str]] = {}
    for pod in pods:
        keys_of.setdefault(pod.key if "/" in wanted else pod.metadata.name, []).append(pod.key)
    alike = sorted(difflib.get_close_matches(wanted, keys_of, n=MATCHES_SHOWN_MAX))
    containing = [name for name in sorted(keys_of) if wanted in name and name not in alike]
    return [key for name in (*alike, *containing) for key in sorted(keys_of[name])][:MATCHES_SHOWN_MAX]


def _pods(pods: Sequence[Pod]) -> str:
    if not pods:
        return "there are no pods in the input"
    keys = sorted(pod.key for pod in pods)
    left = len(keys) - MATCHES_SHOWN_MAX
    return f"there are {', '.join(keys[:MATCHES_SHOWN_MAX])}{f' and {left} more' if left > 0 else ''}"
