"""Creates and deletes pods for their owners, in growing batches, with events.

Inputs: a template and a number of pods, or pods to delete. Outputs: requests; events about the owner
(SuccessfulCreate, FailedCreate, SuccessfulDelete, FailedDelete).

1. Creation starts with one pod, then two, four and so on (slow start): a template that a quota or a webhook rejects
   costs one request instead of five hundred. The first batch with an error is the last.
2. At most `CONCURRENT_REQUESTS_MAX` requests are pending for one owner. After `CREATIONS_IN_A_ROW_MAX` pods other
   tasks run, also on a client that never suspends. Up to that many pods of one template are created with one call.
3. The caller sets the expectations of an owner. `create_pods` and `delete_pods` lower them for requests that fail.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import POD, place_of
from mooring.api.views.meta import ApiObject, View
from mooring.api.views.pod import Pod
from mooring.client.batch_writes import create_many
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.events import EventRecorder
from mooring.client.interface import Client
from mooring.controllers.documents import is_namespace_terminating, owner_reference
from mooring.controllers.expectations import Expectations
from mooring.kit.clock import Clock
from mooring.kit.tasks import run_bounded

CONCURRENT_REQUESTS_MAX = 32
CREATIONS_IN_A_ROW_MAX = 16
BATCH_INITIAL = 1


_Item = TypeVar("_Item")


class PodControlError(Exception):
    """Pods could not be created or deleted. The text appears in conditions."""


class _NotWantedError(PodControlError):
    """The owner is gone or terminating, so it needs no more pods."""


class CreatedPod(View):
    """The metadata of a new pod that callers need."""

    name: str = ""
    resource_version: str = ""


class _Pod(View):
    metadata: CreatedPod = CreatedPod()


_read = msgspec.json.Decoder(_Pod).decode


def pod_of_template(template: Document, owner: ApiObject) -> Document:
    """A pod of a template, controlled by its owner. It shares its parts with the template."""
    template_metadata: Document = template.get("metadata") or {}
    metadata: Document = {"generateName": f"{owner.metadata.name}-", "ownerReferences": [owner_reference(owner)]}
    for part in ("labels", "annotations", "finalizers"):
        if template_metadata.get(part):
            metadata[part] = template_metadata[part]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}


class PodControl:
    """Creates and deletes pods for one controller."""

    def __init__(self, client: Client, recorder: EventRecorder, clock: Clock, expectations: Expectations) -> None:
        self._client = client
        self._recorder = recorder
        self._clock = clock
        self._expectations = expectations

    async def create(
        self, namespace: str, pod: Document, owner: ApiObject, count: int = 1
    ) -> list[CreatedPod | ClientError]:
        """Create pods of one template. Returns the pod or the error of each, after an event."""
        if not pod["metadata"].get("labels"):
            raise PodControlError("unable to create pods, no labels")
        return [
            self._record(owner, outcome)
            for outcome in await create_many(self._client, POD, namespace, pod, [""] * count)
        ]

    def _record(self, owner: ApiObject, outcome: bytes | ClientError) -> CreatedPod | ClientError:
        """Record the event of a creation."""
        if isinstance(outcome, ClientError):
            if not is_namespace_terminating(outcome):
                self._recorder.event(owner, "Warning", "FailedCreate", f"Error creating: {outcome}")
            return outcome
        created = _read(outcome).metadata
        self._recorder.event(owner, "Normal", "SuccessfulCreate", f"Created pod: {created.name}")
        return created

    async def delete(self, pod: Pod, owner: ApiObject) -> None:
        """Delete one pod. Raises `NotFoundError` if it is gone, `PodControlError` if it could not be deleted."""
        try:
            await self._client.delete(*place_of(pod))
        except NotFoundError:
            raise
        except ClientError as error:
            self._recorder.event(owner, "Warning", "FailedDelete", f"Error deleting: {error}")
            raise PodControlError(f"unable to delete pods: {error}") from error
        self._recorder.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")

    async def create_pods(
        self,
        owner: ApiObject,
        count: int,
        make_pod: Callable[[int], Document],
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> tuple[int, Exception | None]:
        """Create pods that the owner's expectations include. `make_pod` gets the number of each pod.

        Pods that are the same document are created together. Stops without an error when `is_wanted` turns false.
        Returns how many pods were created, and the first error.
        """
        key, namespace = owner.key, owner.metadata.namespace
        attempted = succeeded = 0

        async def create_equal(pods: Sequence[Document]) -> None:
            nonlocal attempted, succeeded
            if not is_wanted():
                raise _NotWantedError
            attempted += len(pods)
            try:
                outcomes = await self.create(namespace, pods[0], owner, len(pods))
            except PodControlError:
                self._expectations.creation_failed(key, len(pods))
                raise
            errors = []
            for outcome in outcomes:
                if isinstance(outcome, CreatedPod):
                    self._expectations.creation_answered(key, outcome.resource_version)
                elif not is_namespace_terminating(outcome):  # else keep expecting it: a retry cannot succeed either
                    self._expectations.creation_failed(key)
                    errors.append(outcome)
            succeeded += len(pods) - len(errors)
            if len(pods) == CREATIONS_IN_A_ROW_MAX:
                await self._clock.wait(0)
            if errors:
                raise errors[0]

        error: Exception | None = None
        for numbers in _slow_start(count):
            groups = _equal_pods([make_pod(number) for number in numbers])
            limit = CONCURRENT_REQUESTS_MAX // max(map(len, groups))
            errors = await self.run_all(groups, create_equal, limit=limit)
            if errors:
                error = errors[0]
                break
        if attempted < count:
            self._expectations.creation_failed(key, count - attempted)
        return succeeded, error if not isinstance(error, _NotWantedError) else None

    async def delete_pods(
        self, owner: ApiObject, pods: Sequence[Pod], prepare: Callable[[Pod], Awaitable[None]] | None = None
    ) -> list[Exception]:
        """Delete pods that the owner's expectations include, each after `prepare`. Returns the errors."""

        async def delete_one(pod: Pod) -> None:
            try:
                if prepare is not None:
                    await prepare(pod)
                await self.delete(pod, owner)
            except NotFoundError:
                self._expectations.deletion_seen(owner.key, pod.key)
            except (ClientError, PodControlError):
                self._expectations.deletion_seen(owner.key, pod.key)
                raise

        return await self.run_all([*pods], delete_one)

    async def slow_start_batch(
        self, count: int, create_one: Callable[[int], Awaitable[None]]
    ) -> tuple[int, Exception | None]:
        """Call `create_one` with 0, 1, … in growing batches. Returns how many succeeded, and the first error."""
        succeeded = 0
        for numbers in _slow_start(count):
            errors = await self.run_all([*numbers], create_one)
            succeeded += len(numbers) - len(errors)
            if errors:
                return succeeded, errors[0]
        return succeeded, None

    async def run_all(
        self,
        items: list[_Item],
        work: Callable[[_Item], Awaitable[None]],
        *,
        limit: int = CONCURRENT_REQUESTS_MAX,
    ) -> list[Exception]:
        """Call `work` for every item, several at a time. Returns the errors, in the order of the items."""
        taken = 0

        async def run_one(item: _Item) -> Exception | None:
            nonlocal taken
            taken += 1
            if taken % CREATIONS_IN_A_ROW_MAX == 0:
                await self._clock.wait(0)
            try:
                await work(item)
            except (ClientError, PodControlError) as error:
                return error
            return None

        if len(items) == 1:
            errors = [await run_one(items[0])]
        else:
            errors = await run_bounded(run_one, items, limit=limit, name="pod control")
        return [error for error in errors if error is not None]


def _slow_start(count: int) -> Iterator[range]:
    """The numbers 0, 1, … in growing batches."""
    done, batch = 0, min(count, BATCH_INITIAL)
    while batch > 0:
        yield range(done, done + batch)
        done += batch
        batch = min(2 * batch, count - done)


def _equal_pods(pods: Sequence[Document]) -> list[list[Document]]:
    """Pods that follow each other and are the same document, at most `CREATIONS_IN_A_ROW_MAX` together."""
    groups: list[list[Document]] = []
    for pod in pods:
        if groups and groups[-1][0] is pod and len(groups[-1]) < CREATIONS_IN_A_ROW_MAX:
            groups[-1].append(pod)
        else:
            groups.append([pod])
    return groups
