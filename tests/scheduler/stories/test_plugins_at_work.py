"""Users' plugins that do what they should: binders of their own, and rules from a file."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config import load_configuration
from mooring.scheduler.framework.loading import enabled_if_unmentioned, load_plugins
from mooring.scheduler.framework.plugin import SKIP, Bind, Skip
from tests.builders import node, pod
from tests.scheduler.stories.actors import with_plugins
from tests.scheduler.world import World, play


def test_a_bind_plugin_that_does_not_skip_binds_instead_of_the_usual_one() -> None:
    class OwnBinder(Bind):
        """Binds pods of its own with its own words to the API."""

        name = "OwnBinder"

        def __init__(self, client: object) -> None:
            self._client = client
            self.bound = 0

        async def bind(self, pod: PodInfo, node_name: str) -> Skip | None:
            if pod.name != "mine":
                return SKIP
            self.bound += 1
            await self._client.bind(pod.namespace, pod.name, pod.uid, node_name)  # type: ignore[attr-defined]
            return None

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=2), pod("mine", cpu=1), pod("theirs", cpu=1))
        await world.settle()
        assert [await world.node_of(name) for name in ("mine", "theirs")] == ["n1", "n1"]
        plugin = world.scheduler.engine.cycles["default-scheduler"].profile.plugins["OwnBinder"]
        assert isinstance(plugin, OwnBinder)
        assert plugin.bound == 1

    config, registry = with_plugins(OwnBinder)
    config["profiles"][0]["plugins"]["bind"] = {"enabled": [{"name": "OwnBinder"}, {"name": "DefaultBinder"}]}
    play(story, config=config, registry=registry)


def test_when_all_binders_skip_the_pod_is_tried_again() -> None:
    class Lazy(Bind):
        name = "Lazy"

        async def bind(self, pod: PodInfo, node_name: str) -> Skip:
            return SKIP

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=2), pod("web", cpu=1))
        await world.settle(0.5)
        reported = await world.condition("web")
        assert reported is not None
        assert reported[:2] == ("False", "SchedulerError")
        assert world.scheduler.engine.columns.pods == {}

    config, registry = with_plugins(Lazy)
    config["profiles"][0]["plugins"]["bind"] = {"enabled": [{"name": "Lazy"}], "disabled": [{"name": "*"}]}
    play(story, config=config, registry=registry)


def test_a_plugin_file_works_in_the_running_scheduler(tmp_path: Path) -> None:
    path = tmp_path / "rules.py"
    path.write_text(
        dedent("""
        from mooring.scheduler.framework.node_plugins import FilterPlugin, Status

        class OnlyEven(FilterPlugin):
            name = "OnlyEven"
            def filter(self, pod, node_info):
                if int(node_info.name[1:]) % 2:
                    return Status.unschedulable("node(s) are odd")
        """)
    )
    plugins = load_plugins(path)
    _, registry = with_plugins(*plugins)
    loaded = enabled_if_unmentioned(load_configuration(None), [plugin.name for plugin in plugins])
    assert any(use.name == "OnlyEven" for use in loaded.profiles[0].plugins.multi_point.enabled)
    config, _ = with_plugins(*plugins)

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=2), pod("web", cpu=1))
        await world.settle()
        reported = await world.condition("web")
        assert reported is not None
        assert reported[2].startswith("0/1 nodes are available: 1 node(s) are odd.")
        await world.create(node("n2", cpu=2))
        await world.settle(5)
        assert await world.node_of("web") == "n2"

    play(story, config=config, registry=registry)
