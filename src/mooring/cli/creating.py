"""Creating objects in a cluster that has just come up, and waiting until they run.

Comes in   the desk of the cluster, objects from files
Goes out   lines for people

 1. What is there already is left alone: a cluster that is kept has it from the last time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from mooring.api.document import Document
from mooring.api.errors import UnknownKindError
from mooring.api.kinds import DEPLOYMENT, kind_named
from mooring.apiserver.desk import Desk
from mooring.client.errors import AlreadyExistsError, ClientError
from mooring.cluster.ways_in import inside_client

LOOK_S = 0.2


async def create_all(desk: Desk, objects: list[Document]) -> list[str]:
    """Create objects, in their order."""
    client = inside_client(desk, desk.clock, desk.entropy.fork("objects from files"), "mooring")
    lines = []
    for body in objects:
        metadata = body.get("metadata") or {}
        called = f"{str(body.get('kind', '')).lower()}/{metadata.get('name', '')}"
        try:
            kind = kind_named(str(body.get("apiVersion", "")), str(body.get("kind", "")))
            await client.create(kind, metadata.get("namespace") or "default", body)
            lines.append(f"{called} created")
        except AlreadyExistsError:
            lines.append(f"{called} is there already")
        except (ClientError, UnknownKindError) as error:
            lines.append(f"{called} was not created: {error}")
    return lines


async def wait_available(desk: Desk, objects: list[Document]) -> AsyncIterator[str]:
    """A line for each Deployment, when all of its replicas are available."""
    for body in objects:
        if (body.get("apiVersion"), body.get("kind")) != (DEPLOYMENT.api_version, DEPLOYMENT.kind):
            continue
        namespace, name = body["metadata"].get("namespace") or "default", body["metadata"].get("name", "")
        while (live := await desk.lookup.get(DEPLOYMENT, namespace, name)) is not None:
            wanted = live["spec"].get("replicas", 1)
            if live["status"].get("availableReplicas", 0) >= wanted:
                yield f"deployment/{name}: {wanted} of {wanted} replicas are available"
                break
            await desk.clock.wait(LOOK_S)
