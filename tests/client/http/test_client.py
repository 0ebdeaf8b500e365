"""HttpClient: the client contract; pages, query options, and requests that are rejected before they are sent.

Service account tokens; paths of objects; URLs, headers and error texts of requests to other HTTP servers.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable

import pytest

from mooring.api.decode import decode
from mooring.api.kinds import CLUSTER_ROLE, CONFIG_MAP, NAMESPACE, NODE, POD, REPLICA_SET, Kind
from mooring.api.views.pod import Pod
from mooring.client.errors import BadRequestError, ClientError, NoAnswerError, ServerError
from mooring.client.http.client import (
    PAGE_SIZE,
    HttpClient,
    HttpLimits,
    binding_path,
    collection_path,
    creation_path,
    object_path,
    with_query,
)
from mooring.client.http.dial import ConnectError, connect, exchange_error_text
from mooring.client.http.exchange import HttpUrl, encode_request
from mooring.client.http.http_connection import BrokenResponseError, ConnectionClosedError
from mooring.client.interface import (
    EVERYTHING,
    Change,
    Client,
    Deletion,
    JsonObject,
    PatchForm,
    Propagation,
    Selection,
    UnavailableClient,
    request_token,
)
from mooring.kit.loop import run, run_real
from mooring.kit.tasks import TaskGroup
from tests.client.contract import ClientContract
from tests.client.contract_play import NS, Play, Scenario, create_all, names
from tests.client.http.play import HttpSetup, run_over_http
from tests.client.http.server import Refuse, Reset, sent
from tests.client.objects import at, config_map, pod, text_at
from tests.ports import silent_port


class TestTheContract(ClientContract):
    @pytest.fixture
    def play(self) -> Play:
        def play(scenario: Scenario) -> None:
            async def on_the_client(setup: HttpSetup) -> None:
                await scenario(setup.client)

            run_over_http(on_the_client)

        return play


def test_http_client_implements_the_client_interface() -> None:
    async def scenario(setup: HttpSetup) -> None:
        client: Client = setup.client
        assert isinstance(client, HttpClient)

    run_over_http(scenario)


def test_items_of_a_list_have_kind_and_api_version() -> None:
    async def scenario(setup: HttpSetup) -> None:
        raw = await setup.client.create(POD, NS, pod("web", labels={"app": "web"}))
        (item,) = (await setup.client.list(POD)).items
        assert (at(item, "kind"), at(item, "apiVersion")) == ("Pod", "v1")
        assert decode(item) == decode(raw)

    run_over_http(scenario)


def test_a_list_without_a_limit_is_read_in_pages() -> None:
    async def scenario(setup: HttpSetup) -> None:
        for number in range(PAGE_SIZE + 2):
            await setup.local.create(CONFIG_MAP, NS, config_map(f"c{number:04d}"), is_answer_wanted=False)
        listing = await setup.client.list(CONFIG_MAP, Selection(NS))
        assert names(listing.items) == [f"c{number:04d}" for number in range(PAGE_SIZE + 2)]
        assert (listing.continue_token, listing.remaining) == ("", None)
        assert listing.revision == text_at(listing.items[-1], "metadata.resourceVersion")
        assert len(sent(setup.server.requests, "GET")) == 2

    run_over_http(scenario)


def test_a_list_is_read_without_pages_after_a_page_expired() -> None:
    async def scenario(setup: HttpSetup) -> None:
        for number in range(PAGE_SIZE + 1):
            await setup.local.create(CONFIG_MAP, NS, config_map(f"c{number:04d}"), is_answer_wanted=False)
        setup.server.faults = [Refuse(410, containing="continue=")]
        listing = await setup.client.list(CONFIG_MAP, Selection(NS), revision="3")
        assert len(listing.items) == PAGE_SIZE + 1
        first, second, third = setup.server.requests
        assert "resourceVersion=3&resourceVersionMatch=NotOlderThan" in first
        assert "continue=" in second
        assert "limit" not in third

    run_over_http(scenario)


@pytest.mark.parametrize(
    ("request_of", "asked"),
    [
        pytest.param(
            lambda client: client.list(POD, Selection(NS, "app in (a,b)", "spec.nodeName="), limit=7, revision="9"),
            "GET /api/v1/namespaces/default/pods?labelSelector=app+in+%28a%2Cb%29&fieldSelector=spec.nodeName%3D"
            "&limit=7&resourceVersion=9",
            id="a list with a selection at a revision",
        ),
        pytest.param(
            lambda client: client.patch(POD, NS, "web", {}, form=PatchForm.APPLY),
            "PATCH /api/v1/namespaces/default/pods/web?fieldManager=mooring&force=true",
            id="a server-side apply has a field manager",
        ),
        pytest.param(
            lambda client: client.get(NODE, "ignored", "n1"), "GET /api/v1/nodes/n1", id="get of a cluster-scoped kind"
        ),
    ],
)
def test_method_path_and_query_of_requests(request_of: Callable[[HttpClient], Awaitable[object]], asked: str) -> None:
    async def scenario(setup: HttpSetup) -> None:
        setup.server.faults = [Refuse(400)]
        with pytest.raises(BadRequestError):
            await request_of(setup.client)
        assert setup.server.requests == [asked]

    run_over_http(scenario)


def test_a_watch_requests_a_timeout_and_bookmarks() -> None:
    async def scenario(setup: HttpSetup) -> None:
        since = await create_all(setup.local, config_map("a"))
        for bookmarks in (True, False):
            async with setup.client.watch(CONFIG_MAP, since=since, bookmarks=bookmarks):
                pass
        with_them, without = setup.server.requests
        assert f"watch=true&resourceVersion={since}&allowWatchBookmarks=true&timeoutSeconds=" in with_them
        assert "allowWatchBookmarks" not in without
        for asked in (with_them, without):
            assert 300 <= int(asked.rpartition("=")[2]) <= 600

    run_over_http(scenario)


@pytest.mark.parametrize("since", ["", "0", "yesterday"])
def test_a_watch_without_a_revision_is_rejected_before_it_is_sent(since: str) -> None:
    async def scenario(setup: HttpSetup) -> None:
        with pytest.raises(BadRequestError):
            setup.client.watch(POD, since=since)
        assert setup.server.requests == []

    run_over_http(scenario)


def test_a_delete_sends_preconditions_and_options() -> None:
    bodies: list[Deletion | None] = []

    async def scenario(setup: HttpSetup) -> None:
        async def delete(kind: object, namespace: str, name: str, deletion: Deletion | None = None) -> None:
            bodies.append(deletion)

        setup.local.delete = delete  # type: ignore[method-assign]
        wanted = Deletion(grace_s=0, uid="u", revision="7", propagation=Propagation.FOREGROUND)
        await setup.client.delete(POD, NS, "web", wanted)
        await setup.client.delete(POD, NS, "web")
        assert bodies == [wanted, Deletion()]

    run_over_http(scenario)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Reset(is_carried_out=True), id="the response is lost"),
        pytest.param(Reset(), id="the request is lost"),
        pytest.param(Refuse(500), id="the server fails"),
        pytest.param(Refuse(503, {"Retry-After": "1"}), id="the server fails with Retry-After"),
        pytest.param(Refuse(504, body=b"<html>", content_type="text/html"), id="a proxy times out"),
    ],
)
def test_a_binding_with_an_unknown_outcome_is_not_repeated(fault: Refuse | Reset) -> None:
    async def scenario(setup: HttpSetup) -> None:
        raw = await setup.local.create(POD, NS, pod("web"))
        setup.server.faults = [fault]
        with pytest.raises(NoAnswerError) as failure:
            await setup.client.bind(NS, "web", text_at(raw, "metadata.uid"), "n1")
        assert failure.value.is_outcome_unknown
        assert len(setup.server.requests) == 1

    run_over_http(scenario)


def test_a_binding_rejected_with_429_is_repeated() -> None:
    async def scenario(setup: HttpSetup) -> None:
        raw = await setup.local.create(POD, NS, pod("web"))
        setup.server.faults = [Refuse(429, {"Retry-After": "2"}), Refuse(429, {"Retry-After": "3"})]
        await setup.client.bind(NS, "web", text_at(raw, "metadata.uid"), "n1")
        assert setup.clock.waited_s == [2.0, 3.0]
        assert at(await setup.local.get(POD, NS, "web"), "spec.nodeName") == "n1"

    run_over_http(scenario)


def test_a_response_that_is_not_an_object_is_an_error() -> None:
    async def scenario(setup: HttpSetup) -> None:
        page = Refuse(200, body=b"<html>please log in</html>", content_type="text/html")
        setup.server.faults = [page, page]
        with pytest.raises(ServerError, match="expected an object of kind Pod, got text/html"):
            await setup.client.get(POD, NS, "web")
        with pytest.raises(ServerError, match="expected an object of kind PodList, got text/html"):
            await setup.client.list(POD)

    run_over_http(scenario)


def test_very_large_objects_are_read_by_all_verbs() -> None:
    async def scenario(setup: HttpSetup) -> None:
        long = "x" * 1_000_000  # the API allows 1 MiB
        since = await create_all(setup.local, config_map("first"))
        body = config_map("large", data={"long": long}, labels={"a": "b"})
        async with setup.client.watch(CONFIG_MAP, since=since) as watch:
            assert at(await setup.client.create(CONFIG_MAP, NS, body), "data.long") == long
            assert at(await setup.client.get(CONFIG_MAP, NS, "large"), "data.long") == long
            assert at((await setup.client.list(CONFIG_MAP, Selection(NS, "a=b"))).items[0], "data.long") == long
            (event,) = await watch.next_batch()
        assert event.change is Change.ADDED
        assert at(event.raw, "data.long") == long

    run_over_http(scenario)


def test_the_number_of_concurrent_requests_is_limited() -> None:
    async def scenario(setup: HttpSetup) -> None:
        running, most = 0, 0
        are_four = asyncio.Event()
        get = setup.local.get

        async def slow_get(kind: object, namespace: str, name: str) -> bytes:
            nonlocal running, most
            running += 1
            most = max(most, running)
            if running == 4:
                are_four.set()
            await are_four.wait()
            await setup.clock.wait(5.0)
            running -= 1
            return await get(POD, namespace, name)

        await setup.local.create(POD, NS, pod("web"))
        setup.local.get = slow_get  # type: ignore[method-assign]
        async with TaskGroup("requests") as group:
            for number in range(20):
                group.start(setup.client.get(POD, NS, "web"), name=str(number))
        assert most == 4

    run_over_http(scenario, limits=HttpLimits(requests_per_s=0, in_flight_max=4))


def test_a_view_over_http_equals_the_view_of_the_loopback_client() -> None:
    async def scenario(setup: HttpSetup) -> None:
        since = await create_all(setup.local, pod("first"))
        await setup.local.create(POD, NS, pod("web", labels={"app": "web"}, on="n1"))
        async with setup.client.watch(POD, since=since) as over_http, setup.local.watch(POD, since=since) as here:
            (came,), (known,) = await over_http.next_batch(), await here.next_batch()
        assert came.view(Pod) == known.view(Pod)
        assert (came.revision, came.change, came.raw) == (known.revision, known.change, known.raw)

    run_over_http(scenario)


REQUEST: JsonObject = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}


class TokenIssuingClient(UnavailableClient):
    """A client that issues tokens."""

    async def request_token(self, namespace: str, name: str, request: JsonObject) -> bytes:
        return f"{namespace}/{name} {request['kind']}".encode()


def test_request_token_calls_a_client_that_issues_tokens() -> None:
    assert run(request_token(TokenIssuingClient(), "default", "robot", REQUEST)) == b"default/robot TokenRequest"


def test_request_token_fails_for_a_client_that_issues_no_tokens() -> None:
    with pytest.raises(
        BadRequestError, match="tokens for default/robot are given by API servers, not by UnavailableClient"
    ):
        run(request_token(UnavailableClient(), "default", "robot", REQUEST))


def test_request_token_posts_to_the_service_account_over_http() -> None:
    async def scenario(setup: HttpSetup) -> None:
        with pytest.raises(ClientError):  # the server of these tests serves no tokens
            await request_token(setup.client, "default", "robot", REQUEST)
        assert setup.server.requests[-1] == "POST /api/v1/namespaces/default/serviceaccounts/robot/token"

    run_over_http(scenario)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(collection_path(POD, ""), "/api/v1/pods", id="all pods"),
        pytest.param(collection_path(POD, "a"), "/api/v1/namespaces/a/pods", id="the pods of a namespace"),
        pytest.param(collection_path(NODE, "a"), "/api/v1/nodes", id="a cluster-scoped kind"),
        pytest.param(
            collection_path(REPLICA_SET, "a"), "/apis/apps/v1/namespaces/a/replicasets", id="a kind of a group"
        ),
        pytest.param(object_path(NAMESPACE, "", "a"), "/api/v1/namespaces/a", id="a namespace"),
        pytest.param(object_path(POD, "a", "b", "status"), "/api/v1/namespaces/a/pods/b/status", id="a subresource"),
        pytest.param(
            object_path(CLUSTER_ROLE, "", "system:kube ü?"),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:kube%20%C3%BC%3F",
            id="a name that needs escaping",
        ),
        pytest.param(binding_path("a", "b"), "/api/v1/namespaces/a/pods/b/binding", id="a binding"),
        pytest.param(creation_path(POD, "a"), "/api/v1/namespaces/a/pods", id="creation"),
        pytest.param(with_query("/p", EVERYTHING, {"limit": 0, "continue": ""}), "/p", id="an empty query"),
        pytest.param(
            with_query("/p", Selection("", "a=b", "c!=d"), {"limit": 5}),
            "/p?labelSelector=a%3Db&fieldSelector=c%21%3Dd&limit=5",
            id="a query",
        ),
    ],
)
def test_paths_of_collections_and_objects(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize(
    ("kind", "namespace", "name", "words"),
    [
        pytest.param(POD, "a", "", "resource name may not be empty", id="no name"),
        pytest.param(POD, "", "b", "an empty namespace may not be set", id="no namespace"),
        pytest.param(POD, "a", "..", "invalid resource name '..'", id="a parent directory"),
        pytest.param(POD, "a", "b/binding", "invalid resource name", id="a slash"),
        pytest.param(POD, "a%2fb", "c", "invalid namespace", id="an escaped slash"),
    ],
)
def test_names_that_are_not_path_segments_are_rejected(kind: Kind, namespace: str, name: str, words: str) -> None:
    with pytest.raises(BadRequestError, match=words):
        object_path(kind, namespace, name)


def test_creation_without_a_namespace_is_rejected() -> None:
    with pytest.raises(BadRequestError, match="during creation"):
        creation_path(POD, "")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("http://a/b", (False, "a", 80, "a", "/b")),
        ("https://a", (True, "a", 443, "a", "/")),
        ("http://a:81/b?c=d&e=%2F#f", (False, "a", 81, "a:81", "/b?c=d&e=%2F")),
        ("http://[::1]:8080/", (False, "::1", 8080, "[::1]:8080", "/")),
        ("http://a/ü x", (False, "a", 80, "a", "/%C3%BC%20x")),
        ("http://a?b", (False, "a", 80, "a", "/?b")),
        ("http://me:secret@a:81/", (False, "a", 81, "a:81", "/")),
    ],
)
def test_http_url_is_parsed(text: str, wanted: tuple[object, ...]) -> None:
    url = HttpUrl.parse(text)
    assert (url.is_secure, url.host, url.port, url.host_header, url.target) == wanted


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nowhere/x", 'unsupported protocol scheme ""'),
        ("ftp://a/", 'unsupported protocol scheme "ftp"'),
        ("http:///x", "no Host in request URL"),
        ("http://[[::]:80/", "invalid|Invalid|does not appear"),
        ("http://a:99999/", "out of range"),
    ],
)
def test_invalid_urls_are_rejected(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        HttpUrl.parse(text)


@pytest.mark.parametrize(
    ("location", "wanted"),
    [
        ("/c", "http://a:81/c"),
        ("c", "http://a:81/x/c"),
        ("//b/c", "http://b/c"),
        ("https://b:1/c", "https://b:1/c"),
    ],
)
def test_a_redirect_names_the_next_url(location: str, wanted: str) -> None:
    assert HttpUrl.parse("http://a:81/x/y").join(location).text == wanted


def test_encode_request_keeps_the_headers_of_the_caller() -> None:
    headers = [("host", "other"), ("X-Key", "1"), ("X-Key", "2"), ("User-Agent", "me")]

    request = encode_request("POST", HttpUrl.parse("http://a/b?c"), headers, b"body")

    assert request == (
        b"POST /b?c HTTP/1.1\r\nhost: other\r\nX-Key: 1\r\nX-Key: 2\r\nUser-Agent: me\r\nContent-Length: 4\r\n\r\nbody"
    )


def test_a_user_in_the_url_is_a_header() -> None:
    request = encode_request("GET", HttpUrl.parse("http://me:sec%20ret@a/"), [])
    assert b"\r\nHost: a\r\n" in request
    assert b"\r\nAuthorization: Basic bWU6c2VjIHJldA==\r\n" in request


@pytest.mark.parametrize("header", [("X", "a\r\nY: b"), ("X\n", "a"), ("", "a")])
def test_headers_with_line_breaks_are_rejected(header: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="invalid header field"):
        encode_request("GET", HttpUrl.parse("http://a/"), [header])


def _not_tls() -> ssl.SSLError:
    error = ssl.SSLError(1, "wrong version number")
    error.reason = "WRONG_VERSION_NUMBER"
    return error


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (socket.gaierror(socket.EAI_NONAME, "unknown"), "dial tcp: lookup h: no such host"),
        (TimeoutError(), "dial tcp 1.2.3.4:80: i/o timeout"),
        (OSError(errno.EHOSTUNREACH, "x"), "dial tcp 1.2.3.4:80: connect: no route to host"),
        (OSError(errno.ECONNREFUSED, "x"), "dial tcp 1.2.3.4:80: connect: connection refused"),
        (_not_tls(), "http: server gave HTTP response to HTTPS client"),
        (OSError("strange"), "dial tcp 1.2.3.4:80: strange"),
    ],
)
def test_connect_errors_have_the_text_of_go(error: OSError, wanted: str) -> None:
    assert exchange_error_text(ConnectError(error, "h", "1.2.3.4:80"), "elsewhere") == wanted


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (ConnectionClosedError("the server hung up"), "EOF"),
        (OSError(errno.ECONNRESET, "x"), "read tcp 1.2.3.4:80: read: connection reset by peer"),
        (BrokenResponseError("half of it"), "half of it"),
        (_not_tls(), "http: server gave HTTP response to HTTPS client"),
        (OSError(), "OSError"),
    ],
)
def test_exchange_errors_have_the_text_of_go(error: OSError, wanted: str) -> None:
    assert exchange_error_text(error, "1.2.3.4:80") == wanted


def test_a_connect_error_names_the_address() -> None:
    with silent_port() as port, pytest.raises(ConnectError) as caught:
        run_real(connect("127.0.0.1", port, None))
    assert str(caught.value) == f"dial tcp 127.0.0.1:{port}: connect: connection refused"
