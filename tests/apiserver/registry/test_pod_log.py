"""Logs are asked for, and checked before anybody goes to the node."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import NODE, POD
from mooring.apiserver.registry.pod_log import LogOptions, open_log, read_log_options
from mooring.client.errors import BadRequestError, InvalidError, NotFoundError
from mooring.kit.loop import run
from tests.apiserver.registry.fixture import RegistryFixture, call

TWO = {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}], "nodeName": "n"}
ONE = {"containers": [{"name": "a"}], "nodeName": "n"}


class Kubelets:
    """Has a log of one line: what it was asked for."""

    def has_node(self, name: str) -> bool:
        return name == "n"

    async def logs(self, pod: Document, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        async def lines() -> AsyncIterator[bytes]:
            yield f"{pod['metadata']['name']} {container} {options.tail_lines}".encode()

        return lines()


class Elsewhere:
    """Asks the kubelets of other nodes."""

    async def logs(self, node: Document, pod: Document, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        async def lines() -> AsyncIterator[bytes]:
            yield f"{container} on {node['metadata']['name']}, elsewhere".encode()

        return lines()


def log(spec: Document, options: LogOptions, *, node: Any = None, logs: Kubelets | None = None) -> list[bytes] | None:
    async def play() -> list[bytes] | None:
        api_server = RegistryFixture()
        await api_server.put(POD, "p", spec=spec)
        if node is not None:
            await api_server.put(NODE, spec.get("nodeName", "n"), status=node)
        stream = await open_log(api_server.parts.lookup, call(POD, "p", "log"), options, logs, Elsewhere())
        return None if stream is None else [line async for line in stream]

    return run(play())


@pytest.mark.parametrize(
    ("spec", "container", "asked"),
    [(ONE, "", "a"), (TWO, "b", "b"), (TWO, "i", "i")],
    ids=["the only one", "one of several", "one that starts the pod"],
)
def test_the_log_of_a_container(spec: Document, container: str, asked: str) -> None:
    options = LogOptions(container=container, tail_lines=5)
    assert log(spec, options, node={}, logs=Kubelets()) == [f"p {asked} 5".encode()]


def test_a_pod_without_a_node_has_no_log() -> None:
    assert log({"containers": [{"name": "a"}]}, LogOptions()) is None


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        (TWO, LogOptions(), "a container name must be specified for pod p, choose one of: [i a b]"),
        ({"containers": []}, LogOptions(), "a container name must be specified for pod p"),
        (ONE, LogOptions(container="z"), "container z is not valid for pod p"),
    ],
    ids=["which one?", "there is none", "no such container"],
)
def test_which_container(spec: Document, options: LogOptions, message: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        log(spec, options, node={})
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (LogOptions(tail_lines=-1), "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        (LogOptions(limit_bytes=0), "limitBytes: Invalid value: 0: must be greater than 0"),
        (LogOptions(since_s=0), "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (
            LogOptions(since_s=0, since_time="2026-01-01T00:00:00Z"),
            "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        (LogOptions(stream="All"), "stream: Forbidden: may not be specified"),
    ],
)
def test_options(options: LogOptions, fault: str) -> None:
    with pytest.raises(InvalidError) as caught:
        log(ONE, options)
    assert caught.value.message == f'PodLogOptions "p" is invalid: {fault}'


def test_a_node_that_does_not_exist_is_missed_like_a_pod() -> None:
    with pytest.raises(NotFoundError, match='pods "n" not found'):
        log(ONE, LogOptions())


@pytest.mark.parametrize(
    ("node_name", "logs"),
    [("n", None), ("other", Kubelets())],
    ids=["this process has no nodes", "this process has other nodes"],
)
def test_nodes_of_others_are_asked(node_name: str, logs: Kubelets | None) -> None:
    spec = {**ONE, "nodeName": node_name}
    assert log(spec, LogOptions(), node={}, logs=logs) == [f"a on {node_name}, elsewhere".encode()]


class Parameters:
    """The parameters of a request, as the handler reads them."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def text(self, name: str) -> str:
        return self._texts.get(name, "")

    def flag(self, name: str) -> bool:
        return self._texts.get(name, "false") != "false"

    def integer(self, name: str) -> int | None:
        return int(self._texts[name]) if name in self._texts else None


def test_options_are_read_from_parameters() -> None:
    given = {"container": "a", "follow": "true", "tailLines": "3", "sinceTime": "2026-01-01T01:00:00+01:00"}
    assert read_log_options(Parameters(given)) == LogOptions(
        container="a", follows=True, tail_lines=3, since_time="2026-01-01T00:00:00Z"
    )


def test_a_time_that_is_none() -> None:
    with pytest.raises(BadRequestError, match='cannot parse "zz" as "2006"'):
        read_log_options(Parameters({"sinceTime": "zz"}))
