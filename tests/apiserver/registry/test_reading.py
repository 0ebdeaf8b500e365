"""ObjectReader: revisions of lists and gets, continue tokens, and field selectors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
import pytest

from mooring.api import kinds
from mooring.api.kinds import CONFIG_MAP, NODE, POD, Kind
from mooring.apiserver.registry.reading import ObjectReader, check_continue_token, watch_revision
from mooring.apiserver.resources import Resource
from mooring.apiserver.storage.storage import Storage
from mooring.apiserver.worker import WorkerThread
from mooring.client.errors import BadRequestError, ExpiredError, NotFoundError, ServerError, StatusError
from mooring.client.interface import Listing, Selection
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from tests.apiserver.registry.fixture import NS, RegistryFixture

OF_TEAM = Selection(namespace=NS)


class ListFixture:
    """Config maps a, b and c, of which b is deleted; the history begins with the second write."""

    def __init__(self) -> None:
        self.api_server = RegistryFixture()
        self.reader = ObjectReader(Storage(self.api_server.store, WorkerThread()))
        self.revisions: dict[str, int] = {}

    async def fill(self) -> None:
        for name in "abc":
            self.revisions[name] = await self.api_server.put(CONFIG_MAP, name)
        self.revisions["gone"] = await self.api_server.context.object_storage.delete(
            CONFIG_MAP, NS, "b", if_revision=self.revisions["b"]
        )

    def resource(self, kind: Kind) -> Resource:
        return self.api_server.context.resources.of_kind(kind)

    async def list(
        self, *, limit: int = 0, continue_token: str = "", revision: str = "", is_exact: bool | None = None
    ) -> Listing:
        return await self.reader.list(
            self.resource(CONFIG_MAP),
            OF_TEAM,
            limit=limit,
            continue_token=continue_token,
            revision=revision,
            is_exact=is_exact,
        )


def with_list(scenario: Callable[[ListFixture], Awaitable[None]]) -> None:
    async def main() -> None:
        fixture = ListFixture()
        await fixture.fill()
        await scenario(fixture)

    run(main(), VirtualClock())


def names(listing: Listing) -> str:
    return "".join(msgspec.json.decode(raw)["metadata"]["name"] for raw in listing.items)


@pytest.mark.parametrize(
    ("revision", "limit", "is_exact", "listed"),
    [
        pytest.param("", 0, None, "ac", id="no revision"),
        pytest.param("0", 0, None, "ac", id="0"),
        pytest.param("0", 1, None, "ac", id="0 with a limit"),
        pytest.param("b", 0, None, "ac", id="not older than"),
        pytest.param("b", 0, True, "ab", id="exact"),
        pytest.param("b", 5, None, "ab", id="with a limit, exact by default"),
        pytest.param("b", 5, False, "ac", id="with a limit, not older than"),
        pytest.param("", 1, None, "a", id="a page"),
    ],
)
def test_list_returns_the_state_of_the_requested_revision(
    revision: str, limit: int, is_exact: bool | None, listed: str
) -> None:
    async def scenario(fixture: ListFixture) -> None:
        at = str(fixture.revisions[revision]) if revision in fixture.revisions else revision
        assert names(await fixture.list(revision=at, limit=limit, is_exact=is_exact)) == listed

    with_list(scenario)


def test_all_pages_of_a_list_show_the_revision_of_the_first() -> None:
    async def scenario(fixture: ListFixture) -> None:
        first = await fixture.list(limit=1)
        await fixture.api_server.put(CONFIG_MAP, "b")
        second = await fixture.list(limit=1, continue_token=first.continue_token)
        assert (names(first), names(second), second.continue_token) == ("a", "c", "")
        assert second.revision == first.revision

    with_list(scenario)


async def refusal(request: Awaitable[object]) -> StatusError:
    with pytest.raises(StatusError) as caught:
        await request
    return caught.value


def test_a_future_revision_is_a_timeout() -> None:
    async def scenario(fixture: ListFixture) -> None:
        last = fixture.revisions["gone"]
        for request in (
            fixture.list(revision=str(last + 7)),
            fixture.list(revision=str(last + 7), is_exact=True),
            fixture.reader.get(fixture.resource(CONFIG_MAP), NS, "a", str(last + 7)),
        ):
            error = await refusal(request)
            assert (error.code, error.reason) == (504, "Timeout")
            assert error.message == f"Timeout: Too large resource version: {last + 7}, current: {last}"

    with_list(scenario)


def test_a_compacted_revision_is_expired_and_a_paged_list_can_continue_at_the_newest() -> None:
    async def scenario(fixture: ListFixture) -> None:
        first = await fixture.list(limit=1)
        now = await fixture.api_server.put(CONFIG_MAP, "d")
        await fixture.api_server.store.compact(now)
        exact = await refusal(fixture.list(revision=str(fixture.revisions["b"]), is_exact=True))
        assert isinstance(exact, ExpiredError)
        assert exact.message == "The resourceVersion for the provided list is too old."
        page = await refusal(fixture.list(limit=1, continue_token=first.continue_token))
        assert isinstance(page, ExpiredError)
        assert page.message.startswith("The provided continue parameter is too old to display a consistent list")
        assert names(await fixture.list(continue_token=page.continue_token)) == "cd"

    with_list(scenario)


def test_a_continue_token_cannot_be_combined_with_a_revision() -> None:
    async def scenario(fixture: ListFixture) -> None:
        first = await fixture.list(limit=1)
        error = await refusal(fixture.list(continue_token=first.continue_token, revision="2"))
        assert isinstance(error, BadRequestError)
        assert error.message == "specifying resource version is not allowed when using continue"
        assert names(await fixture.list(continue_token=first.continue_token, revision="0")) == "c"

    with_list(scenario)


def test_get_returns_the_newest_state_for_any_known_revision() -> None:
    async def scenario(fixture: ListFixture) -> None:
        resource, last = fixture.resource(CONFIG_MAP), str(fixture.revisions["gone"])
        for revision in ("", "0", str(fixture.revisions["a"]), last):
            raw = msgspec.json.decode(await fixture.reader.get(resource, NS, "a", revision))
            assert raw["metadata"]["resourceVersion"] == str(fixture.revisions["a"])
        with pytest.raises(NotFoundError, match='configmaps "b" not found'):
            await fixture.reader.get(resource, NS, "b", str(fixture.revisions["b"]))

    with_list(scenario)


# --- invalid revisions and continue tokens ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("x", "invalid syntax", id="a word"),
        pytest.param("-1", "invalid syntax", id="below zero"),
        pytest.param("٣", "invalid syntax", id="a digit that Go does not parse"),
        pytest.param(str(1 << 64), "value out of range", id="too large"),
    ],
)
def test_an_invalid_revision_is_rejected_with_the_message_of_each_verb(text: str, why: str) -> None:
    message = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {why}'
    with pytest.raises(ServerError) as caught:
        watch_revision(text)
    assert (caught.value.message, caught.value.code, caught.value.reason) == (message, 500, "")

    async def scenario(fixture: ListFixture) -> None:
        error = await refusal(fixture.list(revision=text))
        assert isinstance(error, BadRequestError)
        assert error.message == f"invalid resource version: {message}"

    with_list(scenario)


@pytest.mark.parametrize(("text", "number"), [("", 0), ("0", 0), ("12", 12), (str((1 << 64) - 1), (1 << 64) - 1)])
def test_watch_revision_parses_numbers(text: str, number: int) -> None:
    assert watch_revision(text) == number


@pytest.mark.parametrize(
    ("token", "why"),
    [
        pytest.param("!", "illegal base64 data at input byte 0", id="no base64"),
        pytest.param("abcdefgh!", "illegal base64 data at input byte 8", id="trailing character"),
        pytest.param("ab+d", "illegal base64 data at input byte 2", id="a character of the standard alphabet"),
        pytest.param("abcde", "illegal base64 data at input byte 4", id="incomplete group of characters"),
        pytest.param("e30=", "illegal base64 data at input byte 3", id="padding"),
        pytest.param("eyJ2", "unexpected end of JSON input", id="truncated JSON"),
        pytest.param("eA", "invalid character 'x' looking for beginning of value", id="no JSON"),
    ],
)
def test_an_invalid_continue_token_is_rejected(token: str, why: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        check_continue_token(token)
    assert caught.value.message == f"invalid continue token: continue key is not valid: {why}"


# --- field selectors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "given", "normalized"),
    [
        pytest.param(POD, "spec.nodeName=n", "spec.nodeName=n", id="a field that the kind allows"),
        pytest.param(
            POD,
            "metadata.name=p,metadata.namespace=team",
            "metadata.name=p,metadata.namespace=team",
            id="name and namespace",
        ),
        pytest.param(
            POD, "spec.host=n,status.phase!=Failed", "spec.nodeName=n,status.phase!=Failed", id="a deprecated name"
        ),
        pytest.param(kinds.JOB, "status.successful=1", "status.succeeded=1", id="a name that differs from the path"),
        pytest.param(NODE, "metadata.name=n", "metadata.name=n", id="of a kind without namespaces"),
        pytest.param(
            kinds.STORAGE_CLASS,
            "metadata.namespace=x",
            "metadata.namespace=x",
            id="namespace of a cluster-scoped kind without named fields",
        ),
        pytest.param(POD, "", "", id="empty"),
    ],
)
def test_supported_field_selectors_are_accepted_and_normalized(kind: Kind, given: str, normalized: str) -> None:
    fixture = ListFixture()
    selection = Selection(namespace=NS, labels="a=b", fields=given)
    assert fixture.reader.checked(fixture.resource(kind), selection) == Selection(NS, "a=b", normalized)


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        pytest.param(POD, "spec.colour=red", "field label not supported: spec.colour", id="a kind with fields"),
        pytest.param(
            NODE,
            "metadata.namespace=x",
            "field label not supported: metadata.namespace",
            id="namespace of a cluster-scoped kind",
        ),
        pytest.param(
            CONFIG_MAP,
            "data=x",
            '"data" is not a known field selector: only "metadata.name", "metadata.namespace"',
            id="a kind without fields",
        ),
        pytest.param(
            kinds.JOB, "spec.x=1", 'field label "spec.x" not supported for Job', id="a kind with its own message"
        ),
        pytest.param(
            kinds.RESOURCE_SLICE,
            "spec.x=1",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.x",
            id="another kind with its own message",
        ),
    ],
)
def test_an_unsupported_field_selector_is_rejected(kind: Kind, given: str, message: str) -> None:
    fixture = ListFixture()
    with pytest.raises(BadRequestError) as caught:
        fixture.reader.checked(fixture.resource(kind), Selection(fields=given))
    assert caught.value.message == message
