"""An admission plugin added as CONTRIBUTING.md describes: one file, and one row in the table of plugins."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mooring.api.kinds import CONFIG_MAP, POD
from mooring.apiserver import admission, assembly
from mooring.apiserver.admission import table
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.server import ApiServer
from mooring.client.errors import ForbiddenError
from tests.api_servers import WITHOUT_CONTROLLERS, with_api_server
from tests.client.objects import read
from tests.docs.pages import ROOT

MODULE = '''"""ImageRegistry: complete image names with a registry, and forbid those without a tag."""

from __future__ import annotations

from mooring.api.kinds import POD, Kind
from mooring.apiserver.admission.interface import refused
from mooring.apiserver.admission.interface import own_items, own_part
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup
from mooring.apiserver.call import Operation


class ImageRegistry(Admission):
    name = "ImageRegistry"

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        return kind is POD and not subresource and operation is Operation.CREATE

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        for container in own_items(own_part(attempt.obj, "spec"), "containers"):
            if "/" not in container["image"]:
                container["image"] = f"registry.example/{container['image']}"

    async def check(self, attempt: Attempt, lookup: Lookup) -> None:
        for container in attempt.obj["spec"]["containers"]:
            if ":" not in container["image"]:
                raise refused(attempt, f"image {container['image']} has no tag")
'''

IMPORT = "from mooring.apiserver.admission.image_registry import ImageRegistry\n"
LAST_MUTATING_ROW = "        PodTopologyLabels(),\n"
FIRST_VALIDATING_ROW = "        PodSecurity(),\n"
ROW = "        ImageRegistry(),\n"


@pytest.fixture(autouse=True)
def added_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a contributor edits: a new module, and the table."""
    (tmp_path / "image_registry.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.setattr(admission, "__path__", [*admission.__path__, str(tmp_path)])
    assert table.__file__ is not None
    text = Path(table.__file__).read_text(encoding="utf-8")
    text = text.replace("\nfrom mooring.kit.clock import", f"\n{IMPORT}from mooring.kit.clock import")
    for row in (LAST_MUTATING_ROW, FIRST_VALIDATING_ROW):
        assert text.count(row) == 1
        text = text.replace(row, row + ROW)
    edited = ModuleType(table.__name__)
    exec(compile(text, table.__file__, "exec"), vars(edited))
    monkeypatch.setattr(assembly, "admission_plugins", edited.admission_plugins)


def pod(name: str, image: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": image}]},
    }


def _image(stored: dict[str, Any]) -> str:
    return str(stored["spec"]["containers"][0]["image"])


@pytest.mark.parametrize(
    ("image", "stored"),
    [
        pytest.param("web:1", "registry.example/web:1", id="the plugin changes the object"),
        pytest.param("other.example/web:1", "other.example/web:1", id="the plugin leaves other objects unchanged"),
    ],
)
def test_an_added_plugin_changes_a_created_object(image: str, stored: str) -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        created = read(await client.create(POD, "default", pod("web", image)))
        assert _image(created) == stored

    with_api_server(scenario)


def test_an_object_rejected_by_an_added_plugin_is_not_stored() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        with pytest.raises(ForbiddenError, match=r'pods "web" is forbidden: image registry\.example/web has no tag'):
            await client.create(POD, "default", pod("web", "web"))
        assert not (await client.list(POD)).items

    with_api_server(scenario)


def test_an_added_plugin_does_not_affect_other_kinds() -> None:
    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        await client.create(CONFIG_MAP, "default", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})

    with_api_server(scenario)


def test_an_added_plugin_can_be_disabled_by_name() -> None:
    disabled = WITHOUT_CONTROLLERS.disabled_admission_plugins | {"ImageRegistry"}
    settings = assembly.Settings(WITHOUT_CONTROLLERS.token_key, disabled_admission_plugins=disabled)

    async def scenario(api_server: ApiServer, client: LoopbackClient) -> None:
        created = read(await client.create(POD, "default", pod("web", "web")))
        assert _image(created) == "web"

    with_api_server(scenario, settings)


def test_the_recipe_in_contributing_names_the_steps() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    recipe = text.partition("### Add an admission plugin")[2].partition("###")[0]
    for place in (
        "src/mooring/apiserver/admission/",
        "src/mooring/apiserver/admission/table.py",
        "handles",
        "admit",
        "check",
    ):
        assert f"`{place}`" in recipe
