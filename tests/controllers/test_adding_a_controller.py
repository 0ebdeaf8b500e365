"""A made-up controller, added as CONTRIBUTING says: a module and a row."""

from __future__ import annotations

from typing import ClassVar

import pytest

from mooring.api.kinds import CONFIG_MAP, NAMESPACE
from mooring.api.views.workloads import Namespace
from mooring.client.errors import AlreadyExistsError, ClientError
from mooring.controllers import manager
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Outcome
from mooring.controllers.manager import CONTROLLERS, enabled_names
from tests.controllers.world import World, play
from tests.docs.pages import ROOT


class WelcomeController(Controller):
    """Creates a ConfigMap `welcome` in each namespace."""

    name: ClassVar[str] = "welcome-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._namespaces = context.informers.informer(Namespace)
        self._namespaces.add_handler(self.name, on_add=lambda namespace: self.queue.add(namespace.metadata.name))

    async def sync(self, key: str) -> Outcome:
        if self._namespaces.lister.by_key(key) is None:
            return DONE
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "welcome", "namespace": key}}
        try:
            await self.client.create(CONFIG_MAP, key, body, is_answer_wanted=False)
        except AlreadyExistsError:
            return DONE
        except ClientError as error:
            return Failed(str(error))
        return DONE


@pytest.fixture(autouse=True)
def added_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a contributor edits: the row in the table."""
    monkeypatch.setattr(manager, "CONTROLLERS", {**CONTROLLERS, WelcomeController.name: WelcomeController})


def test_it_runs() -> None:
    async def story(world: World) -> None:
        await world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "one"}})
        await world.settle()
        found = [each["metadata"] for each in await world.list(CONFIG_MAP)]
        namespaces = [each["metadata"]["name"] for each in await world.list(NAMESPACE)]
        assert "one" in namespaces
        assert [(metadata["namespace"], metadata["name"]) for metadata in found] == [
            (namespace, "welcome") for namespace in namespaces
        ]

    play(story, controllers=[WelcomeController.name])


def test_the_flag_knows_it() -> None:
    known = (*CONTROLLERS, WelcomeController.name)
    assert enabled_names(["*"], known) == list(known)
    assert WelcomeController.name not in enabled_names(["*", f"-{WelcomeController.name}"], known)


def test_the_recipe_names_these_steps() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    recipe = page.partition("### Add a controller")[2].partition("###")[0]
    for place in ("src/mooring/controllers/context.py", "src/mooring/controllers/manager.py", "pyproject.toml"):
        assert place in recipe
