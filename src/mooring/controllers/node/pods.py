"""The pods of a node that is not heard of: nobody else can say that they are not ready.

Comes in   pods, with the node that they are on
Goes out   their Ready condition as False, and an event about each

 1. Only a pod that has a Ready condition which is not False is written.
 2. A pod that is gone meanwhile is nobody's trouble; any other error is, and all pods are tried all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.kinds import POD
from mooring.api.views.pod import Pod
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.events.recorder import EventRecorder
from mooring.client.interface import Client, PatchForm
from mooring.controllers.pods import ready_condition
from mooring.kit.clock import Clock, format_rfc3339


async def mark_pods_not_ready(
    client: Client, recorder: EventRecorder, clock: Clock, pods: Sequence[Pod]
) -> list[ClientError]:
    """What went wrong; the rest is done."""
    errors: list[ClientError] = []
    for pod in pods:
        ready = ready_condition(pod)
        if ready is None or ready.status == "False":
            continue
        condition = {"type": "Ready", "status": "False", "lastTransitionTime": format_rfc3339(clock.wall_s())}
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
        place = (POD, pod.metadata.namespace, pod.metadata.name)
        try:
            await client.patch(*place, patch, form=PatchForm.STRATEGIC, subresource="status")
        except NotFoundError:
            continue
        except ClientError as error:
            errors.append(error)
        recorder.event(pod, "Warning", "NodeNotReady", "Node is not ready")
    return errors
