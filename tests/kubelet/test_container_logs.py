"""The endpoint /containerLogs: options, errors, which run is meant."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.client.errors import BadRequestError
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kubelet.container_logs import RunLogOptions, container_logs_page, log_attempt, log_error, log_options
from mooring.kubelet.runtime import LogRequest
from mooring.serving.pages import PageRequest
from tests.api_servers import open_loopback_client
from tests.kubelet.harness import Body, container, pod

ENDED = {"terminated": {"containerID": "mooring://1"}}
LOST = {"terminated": {"exitCode": 137}}
RUNS: Body = {"running": {}}
WHO = 'container "main" in pod "web"'


def waits(reason: str) -> Body:
    return {"waiting": {"reason": reason}}


@pytest.mark.parametrize(
    ("state", "last", "is_previous", "why"),
    [
        pytest.param(RUNS, {}, False, "", id="it runs"),
        pytest.param(ENDED, {}, False, "", id="it has ended"),
        pytest.param(waits("CrashLoopBackOff"), ENDED, False, "", id="it will be started again"),
        pytest.param(LOST, {}, False, f"{WHO} is terminated", id="its end is unknown"),
        pytest.param(
            waits("ContainerCreating"), {}, False, f"{WHO} is waiting to start: ContainerCreating", id="not yet"
        ),
        pytest.param(
            waits("ErrImagePull"), {}, False, f"{WHO} is waiting to start: image can't be pulled", id="no image"
        ),
        pytest.param(
            waits("ImagePullBackOff"),
            *({}, False),
            f"{WHO} is waiting to start: trying and failing to pull image",
            id="still no image",
        ),
        pytest.param(RUNS, ENDED, True, "", id="the run before"),
        pytest.param(RUNS, {}, True, f"previous terminated {WHO} not found", id="there was none"),
    ],
)
def test_why_there_is_no_log(state: Body, last: Body, is_previous: bool, why: str) -> None:
    status = {"containerStatuses": [{"name": "main", "state": state, "lastState": last}]}
    body = {"metadata": {"name": "web"}, "status": status}
    assert log_error(body, "main", is_previous=is_previous) == why


def test_a_container_without_a_reported_state() -> None:
    assert log_error({"metadata": {"name": "web"}}, "main", is_previous=False) == f"{WHO} is not available"


@pytest.mark.parametrize(
    ("state", "is_previous", "attempt"),
    [
        pytest.param(RUNS, False, 3, id="of the run that goes on"),
        pytest.param(RUNS, True, 2, id="of the one before"),
        pytest.param(ENDED, True, 2, id="of the one before the last"),
        pytest.param(waits("CrashLoopBackOff"), False, 3, id="of the last, as there is none"),
        pytest.param(waits("CrashLoopBackOff"), True, 3, id="of the last, which was the one before"),
    ],
)
def test_whose_log_is_meant(state: Body, is_previous: bool, attempt: int) -> None:
    status = {"containerStatuses": [{"name": "main", "state": state, "restartCount": 3}]}
    assert log_attempt({"metadata": {"name": "web"}, "status": status}, "main", is_previous=is_previous) == attempt


class Kubelets:
    """They have said one thing, and of one container nothing yet."""

    def has_node(self, name: str) -> bool:
        return name == "node-0"

    async def logs(self, pod: Document, container: str, options: LogRequest) -> AsyncGenerator[bytes, None]:
        if container == "waiting":
            raise BadRequestError("it is waiting to start")

        async def said() -> AsyncGenerator[bytes, None]:
            yield b"one\n"
            yield b"two\n"

        return said()


def answered(path: str) -> tuple[int, str]:
    clock = VirtualClock()

    async def main() -> tuple[int, str]:
        async with open_loopback_client(clock) as client:
            both = [container(), container("waiting")]
            await client.create(POD, "default", pod("web", containers=both))
            await client.create(POD, "default", pod("elsewhere", on="node-9"))
            answer = await container_logs_page(PageRequest("GET", path, {}), client, Kubelets())
            body = answer.body
            if answer.stream is not None:
                body = b"".join([part async for part in answer.stream])
            return answer.code, body.decode()

    return run(main(), clock)


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        pytest.param("default/web/main", 200, "one\ntwo\n", id="what it said"),
        pytest.param("default/web/other", 404, 'container "other" not found in pod "web"\n', id="no such container"),
        pytest.param("default/other/main", 404, 'pod "other" does not exist\n', id="no such pod"),
        pytest.param("default/elsewhere/main", 404, 'pod "elsewhere" does not exist\n', id="a pod of another node"),
        pytest.param("default/web/waiting", 400, "it is waiting to start", id="nothing yet"),
        pytest.param("default/web", 404, "404 page not found\n", id="half a path"),
    ],
)
def test_what_is_answered(path: str, code: int, said: str) -> None:
    assert answered(f"/containerLogs/{path}") == (code, said)


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        pytest.param({}, RunLogOptions(), id="everything"),
        pytest.param(
            {"follow": ["true"], "previous": ["1"]}, RunLogOptions(follows=True, is_previous=True), id="flags"
        ),
        pytest.param({"timestamps": ["false"]}, RunLogOptions(), id="a flag that is not set"),
        pytest.param(
            {"tailLines": ["0"], "limitBytes": ["9"], "sinceSeconds": ["7"]},
            RunLogOptions(tail_lines=0, limit_bytes=9, since_s=7),
            id="numbers",
        ),
        pytest.param(
            {"sinceTime": ["2026-01-01T00:00:00Z"]}, RunLogOptions(since_time="2026-01-01T00:00:00Z"), id="a time"
        ),
    ],
)
def test_what_is_asked_for(query: dict[str, list[str]], asked: RunLogOptions) -> None:
    assert log_options(PageRequest("GET", "/", query)) == asked


@pytest.mark.parametrize(
    "query",
    [{"tailLines": ["-1"]}, {"limitBytes": ["0"]}, {"sinceSeconds": ["x"]}, {"sinceTime": ["yesterday"]}],
    ids=str,
)
def test_invalid_options(query: dict[str, list[str]]) -> None:
    with pytest.raises(BadRequestError):
        log_options(PageRequest("GET", "/", query))
