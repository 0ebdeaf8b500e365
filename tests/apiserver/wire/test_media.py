from __future__ import annotations

import pytest

from mooring.apiserver.wire import media
from mooring.apiserver.wire.media import (
    BodyForm,
    Conversion,
    NotAcceptableError,
    ResponseFormat,
    UnsupportedMediaTypeError,
)

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
ONLY = (
    "only the following media types are accepted: application/json, application/yaml, "
    "application/vnd.kubernetes.protobuf"
)


@pytest.mark.parametrize(
    ("content_type", "form"),
    [
        ("", BodyForm.JSON),
        ("application/json; charset=utf-8", BodyForm.JSON),
        ("Application/JSON", BodyForm.JSON),
        ("application/json;stream=watch;", BodyForm.JSON),
        ("application/yaml", BodyForm.YAML),
        ("application/vnd.kubernetes.protobuf", BodyForm.PROTOBUF),
    ],
)
def test_body_form_comes_from_the_content_type(content_type: str, form: BodyForm) -> None:
    assert media.body_form(content_type) is form


@pytest.mark.parametrize("content_type", ["text/plain", "application/cbor", "application/json;;", "application/json;x"])
def test_other_content_types_are_rejected(content_type: str) -> None:
    with pytest.raises(UnsupportedMediaTypeError, match="the body of the request was in an unknown format"):
        media.body_form(content_type)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", ResponseFormat()),
        ("*/*", ResponseFormat()),
        ("application/json;q=0", ResponseFormat()),
        ("application/cbor,application/json", ResponseFormat()),
        ("application/json;foo=bar", ResponseFormat()),
        ("application/json;sv=v1", ResponseFormat()),
        ("application/json;as=", ResponseFormat()),
        ("application/json;stream=watch", ResponseFormat()),
        ("application/vnd.kubernetes.protobuf, */*", ResponseFormat()),
        ("application/vnd.kubernetes.protobuf,application/json", ResponseFormat()),
        ("application/json;q=0.5,application/yaml", ResponseFormat("application/yaml")),
        ("image/png;q=0.9,application/yaml;q=0.1", ResponseFormat("application/yaml")),
        ("application/json;pretty=1", ResponseFormat(is_pretty=True)),
        (f"{TABLE},application/json", ResponseFormat(conversion=Conversion("Table", "v1"))),
        (f"application/json,{TABLE}", ResponseFormat()),
        (f"{TABLE}beta1", ResponseFormat(conversion=Conversion("Table", "v1beta1"))),
        (TABLE.replace("json", "yaml"), ResponseFormat("application/yaml", Conversion("Table", "v1"))),
        ("application/json;as=Table;g=meta.k8s.io;v=v7,application/json", ResponseFormat()),
    ],
)
def test_negotiate_selects_the_response_format(accept: str, expected: ResponseFormat) -> None:
    assert media.negotiate(accept) == expected
    assert media.negotiate(accept) == expected  # from the cache


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param(TABLE, None, id="a table only"),
        pytest.param(f"{TABLE},application/json", ResponseFormat(), id="or the object"),
        pytest.param(
            TABLE.replace("Table", "PartialObjectMetadata"),
            ResponseFormat(conversion=Conversion("PartialObjectMetadata", "v1")),
            id="metadata",
        ),
    ],
)
def test_negotiate_skips_tables_for_objects_without_a_table(accept: str, expected: ResponseFormat | None) -> None:
    assert media.negotiate(accept).conversion is not None or expected == ResponseFormat()
    if expected is not None:
        assert media.negotiate(accept, has_table=False) == expected
        return
    with pytest.raises(NotAcceptableError) as raised:
        media.negotiate(accept, has_table=False)
    assert raised.value.message == ONLY


@pytest.mark.parametrize(
    "accept",
    [
        "application/json;as=Table",
        "application/json;as=Table;g=meta.k8s.io;v=v7",
        "application/json;as=Frob;g=meta.k8s.io;v=v1",
        "application/json;g=meta.k8s.io",
        "application/json;stream=foo",
        "application/vnd.kubernetes.protobuf",
    ],
)
def test_unsupported_accept_headers_are_not_acceptable(accept: str) -> None:
    with pytest.raises(NotAcceptableError) as raised:
        media.negotiate(accept)
    assert (raised.value.message, raised.value.has_details) == (ONLY, False)
    assert media.negotiate_error(accept) == ResponseFormat(is_pretty=True)


def test_a_watch_in_yaml_is_not_acceptable() -> None:
    with pytest.raises(NotAcceptableError) as raised:
        media.negotiate("application/yaml", is_watch=True)
    assert raised.value.message == (
        "only the following media types are accepted: application/json;stream=watch, "
        "application/vnd.kubernetes.protobuf;stream=watch"
    )
    assert media.negotiate("application/json", is_watch=True) == ResponseFormat()


def test_negotiate_without_conversions_rejects_tables() -> None:
    with pytest.raises(NotAcceptableError):
        media.negotiate(TABLE, converts=False)


@pytest.mark.parametrize("accept", ["text/html", "application/*", "APPLICATION/JSON", "json"])
def test_check_producible_rejects_unknown_media_types(accept: str) -> None:
    with pytest.raises(NotAcceptableError) as raised:
        media.check_producible(accept)
    assert raised.value.message == (
        "406: Not Acceptable\n\nAvailable representations: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )
    assert raised.value.has_details


@pytest.mark.parametrize("accept", ["", "*/*", "text/html, */*;q=0.1", "application/yaml", TABLE])
def test_check_producible_accepts_known_media_types(accept: str) -> None:
    media.check_producible(accept)


@pytest.mark.parametrize(
    ("pretty", "user_agent", "expected"),
    [
        ("true", "kubectl/1", True),
        ("1", "kubectl/1", True),
        ("false", "curl/7", False),
        ("x", "curl/7", False),
        ("", "curl/7", True),
        (None, "Wget/1", True),
        (None, "Mozilla/5.0 (X11)", True),
        (None, "Curl/7", False),
    ],
)
def test_json_is_indented_for_interactive_clients_or_on_request(
    pretty: str | None, user_agent: str, expected: bool
) -> None:
    assert media.is_pretty(pretty, user_agent) is expected
