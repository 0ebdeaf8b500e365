"""One run of `mooring explain`: read the input, complete it, build an engine, decide, report.

Takes the options of the command and returns a `Report`; notes about the input are passed to a callback.
"""

from __future__ import annotations

import difflib
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from mooring.api.errors import ObjectError
from mooring.api.views.pod import Pod
from mooring.api.yaml import YamlDocument, YamlError, load_document
from mooring.cli.explain.decide import Explainer
from mooring.cli.explain.defaults import FINISHED, ClusterInput, complete, skipped_note
from mooring.cli.explain.report import Outcome, PodExplanation, Report
from mooring.cli.manifests import Manifests, Source, find_sources, read_manifests
from mooring.cli.problems import InputError, Problem, input_error
from mooring.cli.progress import Meter
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from mooring.scheduler.config import ConfigurationError, SchedulerConfiguration, load_configuration
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.loading import PluginFileError, enabled_if_unmentioned
from mooring.scheduler.framework.registry import BadPluginError, Registry
from mooring.scheduler.framework.sources import installed_plugins, plugins_from
from mooring.scheduler.plugins.catalogue import default_registry

MATCHES_SHOWN_MAX = 5

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """What is asked for."""

    files: tuple[str, ...]
    config: str | None
    pod: str | None
    alone: bool
    node_limit: int | None
    seed: int
    plugins: tuple[str, ...] = ()
    """Files with plugins that do not come with the scheduler."""


def run_explain(request: ExplainRequest, stdin: BinaryIO, note: Note) -> Report:
    """Reads, decides and lays out. Raises `InputError`."""
    engine = _engine(request, note)
    manifests = _read(find_sources(request.files), stdin)
    cluster = complete(manifests, Entropy(request.seed))
    _tell(manifests, cluster, note)
    if not cluster.node_count:
        wanted = "wanted at least one: kubectl get nodes -o yaml > nodes.yaml, then add -f nodes.yaml"
        raise input_error(f"found no nodes in {', '.join(request.files)}; {wanted}")
    wanted_pod = _chosen(request.pod, cluster) if request.pod is not None else None
    explained = _explained(request, engine, cluster, wanted_pod)
    return Report(
        pods=explained,
        node_count=cluster.node_count,
        placed_count=len(cluster.placed),
        pending_count=len(cluster.pending),
        seed=request.seed,
        is_about_one=wanted_pod is not None,
    )


def _read(sources: list[Source], stdin: BinaryIO) -> Manifests:
    # How long standard input is shows when it has been read; what takes time comes after that.
    piped = stdin.read() if any(source.path is None for source in sources) else b""
    total_bytes = sum(source.size_bytes for source in sources) + len(piped)
    with Meter("reading", total_bytes, SystemClock()) as meter:
        return read_manifests(sources, io.BytesIO(piped), meter.advance)


def _tell(manifests: Manifests, cluster: ClusterInput, note: Note) -> None:
    if manifests.skipped:
        note(skipped_note(manifests.skipped))
    for text in cluster.notes:
        note(text)
    if not cluster.pending and manifests.workloads:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(manifests.workloads.items()))
        note(f"no pending pods, and workloads are not expanded into pods: {kinds}")


def _explained(
    request: ExplainRequest, engine: Engine, cluster: ClusterInput, wanted: Pod | None
) -> tuple[PodExplanation, ...]:
    if wanted is not None and not any(pod is wanted for pod in cluster.pending):
        return (_settled(wanted),)
    try:
        explainer = Explainer(engine, cluster, request.node_limit)
        with Meter("deciding", len(cluster.pending), SystemClock()) as meter:
            if wanted is not None:
                return (explainer.explain_one(wanted, meter.advance, alone=request.alone),)
            return tuple(explainer.explain_all(meter.advance))
    except ObjectError as error:
        raise input_error(str(error)) from error


def _settled(pod: Pod) -> PodExplanation:
    """A pod about which there is nothing to decide."""
    is_finished = pod.status.phase in FINISHED
    return PodExplanation(
        pod=pod.key,
        outcome=Outcome.FINISHED if is_finished else Outcome.RUNNING,
        priority=pod.spec.priority or 0,
        scheduler=pod.spec.scheduler_name,
        node=pod.spec.node_name or None,
        message=f"its phase is {pod.status.phase}" if is_finished else "",
    )


# --- finding the pod --------------------------------------------------------------------------------------------


def _chosen(wanted: str, cluster: ClusterInput) -> Pod:
    """The pod that a name, or NAMESPACE/NAME, means. Raises `InputError`."""
    pods = cluster.pods()
    matching = [pod for pod in pods if wanted in (pod.metadata.name, pod.key)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        keys = ", ".join(sorted(pod.key for pod in matching))
        raise input_error(f'found several pods named "{wanted}"; say which one: {keys}')
    near = _near(wanted, pods)
    advice = f"did you mean {' or '.join(near)}?" if near else _pods(pods)
    raise input_error(f'found no pod "{wanted}"; {advice}')


def _near(wanted: str, pods: list[Pod]) -> list[str]:
    """Pods with almost that name: typing errors first, then names that contain it."""
    keys_of: dict[str, list[str]] = {}
    for pod in pods:
        keys_of.setdefault(pod.key if "/" in wanted else pod.metadata.name, []).append(pod.key)
    alike = sorted(difflib.get_close_matches(wanted, keys_of, n=MATCHES_SHOWN_MAX))
    containing = [name for name in sorted(keys_of) if wanted in name and name not in alike]
    return [key for name in (*alike, *containing) for key in sorted(keys_of[name])][:MATCHES_SHOWN_MAX]


def _pods(pods: list[Pod]) -> str:
    if not pods:
        return "there are no pods in the input"
    keys = sorted(pod.key for pod in pods)
    left = len(keys) - MATCHES_SHOWN_MAX
    return f"there are {', '.join(keys[:MATCHES_SHOWN_MAX])}{f' and {left} more' if left > 0 else ''}"


# --- the configuration ------------------------------------------------------------------------------------------


def _engine(request: ExplainRequest, note: Note) -> Engine:
    document = _configuration_file(request.config) if request.config is not None else None
    registry = default_registry()
    added = _register(request.plugins, registry)
    try:
        configuration = load_configuration(document.data if document is not None else None)
        configuration = enabled_if_unmentioned(configuration, added)
        engine = Engine(configuration, entropy=Entropy(request.seed), registry=registry)
    except ConfigurationError as error:
        if document is None:  # a plugin of the user's that wants arguments
            raise InputError(Problem("", problem.text) for problem in error.problems) from error
        raise InputError(
            Problem(f"{request.config}:{document.line_of(problem.path)}", problem.text) for problem in error.problems
        ) from error
    except ValueError as error:  # a plugin that does not exist, or cannot work as it is configured
        raise input_error(str(error), request.config or "") from error
    _tell_unused(configuration, note)
    return engine


def _register(sources: tuple[str, ...], registry: Registry) -> list[str]:
    """Lets in what is installed, and the plugins of these sources. Returns the names of the latter."""
    names = []
    try:
        for plugin in installed_plugins():
            registry.register(plugin)
    except (PluginFileError, BadPluginError) as error:
        raise input_error(str(error)) from error
    for source in dict.fromkeys(sources):
        try:
            for plugin in plugins_from(source):
                registry.register(plugin)
                names.append(plugin.name)
        except PluginFileError as error:
            raise input_error(str(error)) from error  # it says where
        except BadPluginError as error:
            raise input_error(str(error), source) from error
    return names


def _configuration_file(name: str) -> YamlDocument:
    try:
        return load_document(Path(name).read_bytes(), name)
    except YamlError as error:
        raise input_error(f"cannot be read as YAML or JSON: {error.text}", f"{name}:{error.line}") from error
    except OSError as error:
        raise input_error(f"cannot be read: {error.strerror or error}", name) from error


def _tell_unused(configuration: SchedulerConfiguration, note: Note) -> None:
    if configuration.extenders:
        note(f"{len(configuration.extenders)} extender(s) in the configuration are not asked")
