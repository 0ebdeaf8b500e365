"""A fake kube-scheduler, for tests of the harness of `mooring parity`: it says nothing about the real one.

It takes the flags that the harness gives, decides with our own engine, and logs and writes as kube-scheduler does.
The first argument says what it gets wrong: `nothing`, `score`, `message`, `victims`, `format`, or `crash`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from mooring.api import kinds
from mooring.api.decode import decode_as
from mooring.api.views.pod import Pod
from mooring.cli.parity.kube_scheduler import CONFIGURATION
from mooring.cli.parity.run import READ_KINDS
from mooring.client.http.client import HttpClient
from mooring.client.interface import PatchForm
from mooring.client.kubeconfig.load import load_connection
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run_real
from mooring.scheduler.config import load_configuration
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.engine import Engine

POLL_S = 0.01


def main() -> None:
    mistake, arguments = sys.argv[1], sys.argv[2:]
    if "--version" in arguments:
        print("Kubernetes v1.36.4")
        return
    if mistake == "crash":
        log('"the fake ends"')
        sys.exit(3)
    file = next(argument for argument in arguments if argument.startswith("--config=")).removeprefix("--config=")
    run_real(schedule(json.loads(Path(file).read_text())["clientConnection"]["kubeconfig"], mistake))


def log(text: str) -> None:
    print(f"I1118 10:00:00.000000       1 schedule_one.go:1] {text}", file=sys.stderr, flush=True)


async def schedule(kubeconfig: str, mistake: str) -> None:
    clock, done = SystemClock(), set[str]()
    async with HttpClient(load_connection(clock, kubeconfig=kubeconfig), clock, Entropy(1), component="fake") as client:
        while True:
            for raw in (await client.list(kinds.POD)).items:
                pod = decode_as(Pod, raw)
                if not pod.spec.node_name and pod.metadata.uid not in done:
                    done.add(pod.metadata.uid)
                    await attempt(client, pod, mistake)
            await clock.wait(POLL_S)


async def attempt(client: HttpClient, pod: Pod, mistake: str) -> None:
    engine = Engine(load_configuration(CONFIGURATION), entropy=Entropy(2))
    for kind in READ_KINDS:
        assert kind.view is not None
        for raw in (await client.list(kind)).items:
            view = decode_as(kind.view, raw)
            if view.key != pod.key or kind is not kinds.POD:
                engine.put(view)
    decision = engine.decide(engine.record(pod), in_full=True)
    if decision.node_name is not None:
        log_scores(pod, decision, mistake)
        await client.bind(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid, decision.node_name)
        log(
            f'"Successfully bound pod to node" pod="{pod.key}" node="{decision.node_name}" '
            f"evaluatedNodes=9 feasibleNodes={decision.feasible_count}"
        )
        return
    await report(client, pod, decision, mistake)


def log_scores(pod: Pod, decision: Decision, mistake: str) -> None:
    if decision.feasible_count == 1 or mistake == "format":
        return
    for node, scores in decision.scores.items():
        for plugin, score in scores.items():
            if plugin != "total":
                wrong = mistake == "score" and plugin == "ImageLocality"
                log(
                    f'"Plugin scored node for pod" pod="{pod.key}" plugin="{plugin}" node="{node}" '
                    f"score={score + wrong}"
                )


async def report(client: HttpClient, pod: Pod, decision: Decision, mistake: str) -> None:
    plan = decision.preemption
    message = (decision.message or "") + (" Really." if mistake == "message" else "")
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    status: dict[str, Any] = {"conditions": [condition]}
    if plan is not None:
        status["nominatedNodeName"] = plan.node_name
    place = (kinds.POD, pod.metadata.namespace, pod.metadata.name)
    await client.patch(*place, {"status": status}, form=PatchForm.STRATEGIC, subresource="status")
    victims = list(plan.victims) if plan is not None else []
    for victim in victims[1:] if mistake == "victims" else victims:
        await client.delete(kinds.POD, victim.namespace, victim.name)


if __name__ == "__main__":
    main()
