"""Names of objects in namespaces that the caller may not read are masked."""

from __future__ import annotations

import pytest

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.serving.pages import PIECE_BYTES, PageRequest, PageResponse, masked, named_namespaces

BODY = b'{"pod": "secret/db-0", "text": "0/4 nodes: evict open/web-1 and secret/db-0, not secret/db-1."}'
NAMESPACES = frozenset({"open", "secret"})


def seen(body: bytes, *readable: str, query: dict[str, list[str]] | None = None) -> PageResponse:
    async def may_read(namespace: str) -> bool:
        return namespace in readable

    clock = VirtualClock()

    async def main() -> PageResponse:
        response = PageResponse(body, namespaces=await named_namespaces(body, NAMESPACES, clock))
        return await masked(PageRequest("GET", "/", query or {}), response, may_read, clock)

    return run(main(), clock)


@pytest.mark.parametrize(
    ("readable", "body"),
    [
        (("",), BODY),
        (("open", "secret"), BODY),
        (("open",), b'{"pod": "hidden/1", "text": "0/4 nodes: evict open/web-1 and hidden/1, not hidden/2."}'),
        ((), b'{"pod": "hidden/1", "text": "0/4 nodes: evict hidden/2 and hidden/1, not hidden/3."}'),
    ],
)
def test_the_same_name_gets_the_same_mask(readable: tuple[str, ...], body: bytes) -> None:
    assert seen(BODY, *readable).body == body


@pytest.mark.parametrize(
    "body",
    [
        b"node.kubernetes.io/unschedulable, example.com/secret/x, my-secret/x, 3/4",
        b"secret: nothing is named",
        b"other/pod of a namespace that does not exist",
    ],
)
def test_what_is_no_name_stays(body: bytes) -> None:
    response = seen(body)
    assert (response.body, response.namespaces) == (body, frozenset())


def test_a_pod_that_the_caller_may_not_read_cannot_be_asked_for() -> None:
    response = seen(BODY, "open", query={"pod": ["secret/db-0"]})
    assert (response.code, response.body) == (403, b'forbidden: you cannot list pods in the namespace "secret"\n')
    assert seen(b'["open/web-1"]', "open", query={"pod": ["open/web-1"]}).code == 200


def test_a_long_body_is_masked_in_pieces_that_cut_no_name() -> None:
    names = b", ".join(b"secret/db-%d" % (number % 7) for number in range(PIECE_BYTES // 3))
    masks = b", ".join(b"hidden/%d" % (number % 7 + 1) for number in range(PIECE_BYTES // 3))
    assert seen(names, "open").body == masks
    assert seen(b"secret/" + b"x" * (2 * PIECE_BYTES)).body == b"hidden/1"
