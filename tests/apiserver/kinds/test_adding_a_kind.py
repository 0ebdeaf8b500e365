"""A made-up kind, added as CONTRIBUTING says: types in a schema, a row, and a module."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mooring.api import kinds
from mooring.api.kinds import Kind
from mooring.api.schema import types
from mooring.api.schema.types import fill, parse_package
from mooring.apiserver import kinds as modules
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.server import ApiServer
from mooring.client.errors import InvalidError
from tests.api_servers import with_api_server
from tests.client.objects import at, read
from tests.docs.pages import ROOT

SCHEMA = """package scheduling io.k8s.api.scheduling.v1

type AnchorKind string Bower Kedge

object Anchor
  1 metadata? meta.ObjectMeta
  2 kindOfAnchor? AnchorKind
  3 weight int32

object AnchorList
  1 metadata? meta.ListMeta
  2 items []Anchor required
"""

ANCHOR = Kind(
    "scheduling.k8s.io/v1",
    "Anchor",
    "anchors",
    is_namespaced=False,
    has_generation=True,
    short_names=("an",),
    returns_deleted=True,
)

MODULE = '''"""Anchor (scheduling.k8s.io/v1)."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import age
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, integer
from mooring.apiserver.validation.fields import FieldError, invalid


def validate_anchor(obj: Document) -> list[FieldError]:
    weight = obj.get("weight", 0)
    return [invalid("weight", weight, "must be greater than 0")] if weight <= 0 else []


def _anchor_cells(obj: Document, now_s: float) -> list[Cell]:
    return [obj["metadata"]["name"], obj["weight"], age(obj, now_s)]


class AnchorStrategy(Strategy):
    table = KindTable((NAME, integer("Weight", "Weight in kilograms."), AGE), _anchor_cells)

    def default(self, obj: Document) -> None:
        obj.setdefault("kindOfAnchor", "Bower")

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_anchor(obj)


STRATEGY = AnchorStrategy
'''

PACKAGE = parse_package(SCHEMA)
fill(PACKAGE, lambda package, name: PACKAGE.types.get(name) or types._find(package, name))


@pytest.fixture(autouse=True)
def added_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a contributor edits: a schema file, the table of kinds, and a new module."""
    loaded = types._package("scheduling")
    for name, made in PACKAGE.types.items():
        monkeypatch.setitem(loaded.types, name, made)
    monkeypatch.setitem(kinds._by_name, (ANCHOR.api_version, ANCHOR.kind), ANCHOR)
    (tmp_path / f"{ANCHOR.module_name}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.setattr(modules, "__path__", [*modules.__path__, str(tmp_path)])


def anchor(name: str, weight: int) -> dict[str, object]:
    return {
        "apiVersion": ANCHOR.api_version,
        "kind": ANCHOR.kind,
        "metadata": {"name": name},
        "weight": weight,
    }


def test_objects_of_an_added_kind_are_defaulted_validated_and_stored() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        made = read(await client.create(ANCHOR, "", anchor("heavy", 500)))
        assert (at(made, "kindOfAnchor"), at(made, "metadata.generation")) == ("Bower", 1)
        listing = await client.list(ANCHOR)
        assert [at(read(item), "metadata.name") for item in listing.items] == ["heavy"]
        with pytest.raises(
            InvalidError, match=r'Anchor\.scheduling\.k8s\.io "light" is invalid: weight: Invalid value: 0'
        ):
            await client.create(ANCHOR, "", anchor("light", 0))

    with_api_server(scenario)


def test_an_added_kind_is_discovered_and_printed() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        resource = api_server.resources.of_kind(ANCHOR)
        assert [column["name"] for column in resource.table.columns] == ["Name", "Weight", "Age"]
        made = read(await client.create(ANCHOR, "", anchor("heavy", 500)))
        assert resource.table.row(made, api_server.clock.wall_s())["cells"][:2] == ["heavy", 500]
        document = json.dumps(api_server.discovery.resource_list("scheduling.k8s.io/v1"))
        assert '"anchors"' in document
        assert '"an"' in document

    with_api_server(scenario)


def test_the_recipe_in_contributing_names_these_steps() -> None:
    recipe = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("### Add a kind")[2].partition("###")[0]
    for place in ("src/mooring/api/schema/", "src/mooring/api/kinds.py", "src/mooring/apiserver/kinds/", "STRATEGY"):
        assert place in recipe
