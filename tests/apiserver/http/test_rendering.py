"""Rendering of objects as JSON, YAML, tables or metadata.

Warning headers: escaping and limits on their length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest
import yaml

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, DAEMON_SET, Kind
from mooring.api.schema.types import struct_of_kind
from mooring.apiserver.http.rendering import IncludeObject, ObjectForm, Rendering, warning_headers
from mooring.apiserver.resources import Resource
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import KindTable
from mooring.client.interface import Listing

WIDGET = Kind("example.com/v1", "Widget", "widgets")
COLUMNS: Sequence[Document] = ({"name": "Name", "type": "string"},)


NAMES_ONLY = KindTable(COLUMNS, lambda obj, now_s: [obj["metadata"]["name"]])
"""A table of one column."""
PLAIN = Rendering(now_s=0.0)


def resource_of(kind: Kind) -> Resource:
    return Resource(kind, Strategy(kind), struct_of_kind(kind.api_version, kind.kind), table=NAMES_ONLY)


def stored(kind: Kind, name: str, **metadata: object) -> bytes:
    """An object as stored: kind and API version come first."""
    whole = {"name": name, "resourceVersion": "7", **metadata}
    return msgspec.json.encode(
        {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": whole, "data": {"x": "1"}}
    )


def read(body: bytes) -> Document:
    document: Document = msgspec.json.decode(body)
    return document


ONE, TWO = stored(CONFIG_MAP, "one"), stored(CONFIG_MAP, "two")
CONFIG_MAPS, WIDGETS = resource_of(CONFIG_MAP), resource_of(WIDGET)


# -------------------------------------------------------------------------------------------------- one object


def test_a_stored_object_is_sent_unchanged_with_a_line_feed() -> None:
    reply = PLAIN.stored(200, CONFIG_MAPS, ONE)
    assert (reply.code, reply.body, reply.content_type) == (200, ONE + b"\n", "application/json")


@pytest.mark.parametrize(
    ("rendering", "is_plain"),
    [
        pytest.param(PLAIN, True, id="JSON"),
        pytest.param(replace(PLAIN, is_pretty=True), False, id="pretty JSON"),
        pytest.param(replace(PLAIN, is_yaml=True), False, id="YAML"),
        pytest.param(replace(PLAIN, form=ObjectForm.TABLE), False, id="a table"),
        pytest.param(replace(PLAIN, form=ObjectForm.METADATA), False, id="metadata"),
    ],
)
def test_only_compact_json_of_objects_is_plain(rendering: Rendering, is_plain: bool) -> None:
    assert rendering.is_plain is is_plain


def test_pretty_json_is_indented_without_a_final_line_feed() -> None:
    body = replace(PLAIN, is_pretty=True).stored(200, CONFIG_MAPS, ONE).body
    assert body.startswith(b'{\n  "kind": "ConfigMap",\n')
    assert body.endswith(b"\n}")
    assert read(body) == read(ONE)


def test_yaml_contains_the_same_object() -> None:
    reply = replace(PLAIN, is_yaml=True).stored(200, CONFIG_MAPS, ONE)
    assert reply.content_type == "application/yaml"
    assert yaml.safe_load(reply.body) == read(ONE)


def test_metadata_of_an_object() -> None:
    body = replace(PLAIN, form=ObjectForm.METADATA).stored(200, CONFIG_MAPS, ONE).body
    metadata = {"name": "one", "resourceVersion": "7"}
    assert read(body) == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}


@pytest.mark.parametrize(
    ("annotations", "shown"),
    [
        pytest.param({"deprecated.daemonset.template.generation": "1"}, None, id="the only annotation"),
        pytest.param({"deprecated.daemonset.template.generation": "1", "a": "b"}, {"a": "b"}, id="among others"),
    ],
)
def test_metadata_omit_the_template_generation_of_a_daemon_set(annotations: dict[str, str], shown: object) -> None:
    raw = stored(DAEMON_SET, "one", annotations=annotations)
    body = replace(PLAIN, form=ObjectForm.METADATA).stored(200, resource_of(DAEMON_SET), raw).body
    assert read(body)["metadata"].get("annotations") == shown


@pytest.mark.parametrize(
    ("included", "shown"),
    [
        pytest.param(IncludeObject.NONE, None, id="None"),
        pytest.param(IncludeObject.OBJECT, "ConfigMap", id="Object"),
        pytest.param(IncludeObject.METADATA, "PartialObjectMetadata", id="Metadata"),
    ],
)
def test_include_object_determines_the_object_in_a_table_row(included: IncludeObject, shown: str | None) -> None:
    body = replace(PLAIN, form=ObjectForm.TABLE, included=included).stored(200, CONFIG_MAPS, ONE).body
    table = read(body)
    assert (table["kind"], table["apiVersion"], table["metadata"]) == (
        "Table",
        "meta.k8s.io/v1",
        {"resourceVersion": "7"},
    )
    (row,) = table["rows"]
    assert row["cells"] == ["one"]
    assert (row["object"] or {}).get("kind") == shown


# -------------------------------------------------------------------------------------------------------- lists


@pytest.mark.parametrize(
    ("listing", "metadata", "names"),
    [
        pytest.param(Listing([ONE, TWO], "9"), {"resourceVersion": "9"}, ["one", "two"], id="two"),
        pytest.param(Listing([], "9"), {"resourceVersion": "9"}, [], id="none"),
        pytest.param(
            Listing([ONE], "9", "more", 1),
            {"resourceVersion": "9", "continue": "more", "remainingItemCount": 1},
            ["one"],
            id="a page",
        ),
        pytest.param(
            Listing([ONE], "9", "more"),
            {"resourceVersion": "9", "continue": "more"},
            ["one"],
            id="a page without a remaining count",
        ),
    ],
)
@pytest.mark.parametrize("is_pretty", [pytest.param(False, id="compact"), pytest.param(True, id="pretty")])
def test_items_of_a_list_have_no_kind_or_api_version(
    listing: Listing, metadata: Document, names: list[str], is_pretty: bool
) -> None:
    whole = read(replace(PLAIN, is_pretty=is_pretty).listing(CONFIG_MAPS, listing).body)
    assert (whole["kind"], whole["apiVersion"], whole["metadata"]) == ("ConfigMapList", "v1", metadata)
    assert [item["metadata"]["name"] for item in whole["items"]] == names
    assert all(set(item) == {"metadata", "data"} for item in whole["items"])


@pytest.mark.parametrize("is_pretty", [pytest.param(False, id="compact"), pytest.param(True, id="pretty")])
def test_items_of_a_list_of_a_custom_kind_have_a_kind(is_pretty: bool) -> None:
    listing = Listing([stored(WIDGET, "one")], "9")
    whole = read(replace(PLAIN, is_pretty=is_pretty).listing(WIDGETS, listing).body)
    assert whole["metadata"] == {"resourceVersion": "9", "continue": ""}
    assert [item["kind"] for item in whole["items"]] == ["Widget"]


def test_a_list_of_metadata_has_its_own_kind() -> None:
    whole = read(
        replace(PLAIN, form=ObjectForm.METADATA, is_for_lists=True).listing(CONFIG_MAPS, Listing([ONE, TWO], "9")).body
    )
    assert (whole["kind"], whole["metadata"]) == ("PartialObjectMetadataList", {"resourceVersion": "9"})
    assert [item["kind"] for item in whole["items"]] == ["PartialObjectMetadata"] * 2


@pytest.mark.parametrize(("items", "rows"), [pytest.param([ONE, TWO], 2, id="rows"), pytest.param([], 0, id="no rows")])
def test_a_list_as_a_table(items: list[bytes], rows: int) -> None:
    table = read(replace(PLAIN, form=ObjectForm.TABLE).listing(CONFIG_MAPS, Listing(items, "9")).body)
    assert (table["columnDefinitions"], table["metadata"]) == (list(COLUMNS), {"resourceVersion": "9"})
    assert len(table["rows"]) == rows


def test_an_empty_default_table_has_null_rows() -> None:
    resource = Resource(CONFIG_MAP, Strategy(CONFIG_MAP), struct_of_kind("v1", "ConfigMap"))
    assert read(replace(PLAIN, form=ObjectForm.TABLE).listing(resource, Listing([], "9")).body)["rows"] is None


# ------------------------------------------------------------------------------------------------------ watches


def test_a_watched_object_is_sent_unchanged() -> None:
    assert PLAIN.watched(CONFIG_MAPS, ONE, is_first=True) is ONE


@pytest.mark.parametrize("is_first", [pytest.param(True, id="the first"), pytest.param(False, id="another")])
def test_only_the_first_table_of_a_watch_has_column_definitions(is_first: bool) -> None:
    table = read(replace(PLAIN, form=ObjectForm.TABLE).watched(CONFIG_MAPS, ONE, is_first=is_first))
    assert table["columnDefinitions"] == (list(COLUMNS) if is_first else None)
    assert table["metadata"] == {"resourceVersion": "7"}


@pytest.mark.parametrize(
    ("form", "names"),
    [
        pytest.param(ObjectForm.OBJECT, ("ConfigMap", "v1"), id="objects"),
        pytest.param(ObjectForm.METADATA, ("PartialObjectMetadata", "meta.k8s.io/v1"), id="metadata"),
        pytest.param(ObjectForm.TABLE, ("Table", "meta.k8s.io/v1"), id="tables"),
    ],
)
def test_a_bookmark_has_the_kind_of_the_watched_format(form: ObjectForm, names: tuple[str, str]) -> None:
    assert replace(PLAIN, form=form).bookmark_kind(CONFIG_MAP) == names


@pytest.mark.parametrize(
    ("texts", "headers"),
    [
        pytest.param([], [], id="none"),
        pytest.param(["take care"], ['299 - "take care"'], id="one"),
        pytest.param(['say "a\\b"'], ['299 - "say \\"a\\\\b\\""'], id="quotes and backslashes"),
        pytest.param(["a\nb", "c\x00", "d\x85", "e"], ['299 - "e"'], id="control characters are omitted"),
        pytest.param(["", "é"], ['299 - "é"'], id="an empty text and a non-ASCII character"),
        pytest.param(["a" * 4_096], ['299 - "' + "a" * 4_096 + '"'], id="as long as allowed"),
        pytest.param(
            ["a" * 4_000, "b" * 97], ['299 - "' + "a" * 256 + '"', '299 - "' + "b" * 97 + '"'], id="truncated"
        ),
    ],
)
def test_warning_headers(texts: list[str], headers: list[str]) -> None:
    assert warning_headers(texts) == headers


def test_warnings_beyond_the_limit_are_omitted() -> None:
    headers = warning_headers([f"{number:03}" + "a" * 500 for number in range(100)])
    assert len(headers) == 16
    assert all(len(header) == 256 + len('299 - ""') for header in headers)
