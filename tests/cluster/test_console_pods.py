"""Pods of a manifest for a console whose process may not create pods."""

from __future__ import annotations

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.worker import WorkerThread
from mooring.client.errors import ForbiddenError
from mooring.client.interface import JsonObject, UnavailableClient
from mooring.cluster.console_pods import manifest_pods_page
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.serving.pages import PageRequest, PageResponse
from tests.console.clusters import MANIFEST


class _MayNotCreate(UnavailableClient):
    async def dry_run_create(self, kind: Kind, namespace: str, body: JsonObject) -> Document:
        raise ForbiddenError('pods is forbidden: User "viewer" cannot create resource "pods"')


def asked(may_read: bool, there: int = 0) -> PageResponse:
    async def main() -> PageResponse:
        async def reads(namespace: str) -> bool:
            return may_read

        async def pods_there(kind: str, namespace: str, name: str) -> int:
            assert (kind, namespace, name) == ("Deployment", "default", "web")
            return there

        body = msgspec.json.encode({"manifest": MANIFEST.replace('requests: {cpu: "1"}, ', "")})
        async with WorkerThread() as worker:
            page = manifest_pods_page(_MayNotCreate(), worker, pods_there)
            answer = page(PageRequest("POST", "/console/data/pods", {}, body=body, may_read=reads))
            assert not isinstance(answer, PageResponse)
            return await answer

    return run(main(), VirtualClock())


def test_pods_that_may_not_be_created_have_defaults_and_a_note() -> None:
    found = msgspec.json.decode(asked(may_read=True, there=1).body)
    [pod] = found["pods"]
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}, "the limit, as the API server does"
    assert found["copies"] == [1]
    assert any("has 1 of 2 pods already" in note for note in found["notes"])
    assert any("without priority" in note and 'User "viewer" cannot create' in note for note in found["notes"])


def test_who_may_not_list_the_pods_of_a_namespace_plans_nothing_there() -> None:
    answer = asked(may_read=False)
    assert (answer.code, b"cannot list pods" in answer.body) == (422, True)
