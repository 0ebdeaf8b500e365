"""docs/plugins.md: its examples work and its tables are complete. Errors of plugins state what to do."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mooring.api.kinds import CUSTOM_RESOURCE_DEFINITION, NODE
from mooring.kit.entropy import Entropy
from mooring.scheduler.catalogue import default_registry
from mooring.scheduler.config import ConfigurationError, load_configuration
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.adapter import REASONS_REPORTED_MAX
from mooring.scheduler.framework.loading import PluginFileError, enabled_if_unmentioned, load_plugins, plugins_from
from mooring.scheduler.framework.node_plugins import FilterPlugin, NodeInfo, NodePlugin, ScorePlugin, Status
from mooring.scheduler.framework.registry import POINTS, SERVICES, BadPluginError
from mooring.scheduler.queue.queueing_hints import registered_kinds
from tests.builders import node, pod
from tests.docs.pages import page
from tests.scheduler.harness import decide, engine_of
from tests.scheduler.stories.test_user_plugins import LICENCE_DEFINITION
from tests.scheduler.world import World, play

GUIDE = page("docs/plugins.md")


def table(section: str) -> list[tuple[str, ...]]:
    return [row.cells for row in GUIDE.rows if row.section == section]


def codes(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


# --- the tables -------------------------------------------------------------------------------------------------


def test_the_extension_points_are_all_there_are() -> None:
    assert [tuple(codes(point) + codes(name)) for point, name, _, _ in table("Extension points")] == [
        (point.config_field, plugin.__name__) for point, plugin in POINTS.items()
    ]


def test_the_constructor_parameters() -> None:
    assert [codes(name)[0] for name, _ in table("Arguments")] == list(SERVICES)


def test_what_a_plugin_sees_of_a_node() -> None:
    documented = [name for names, _ in table("What a plugin sees") for name in codes(names)]
    public = [name for name, _ in inspect.getmembers(NodeInfo, lambda value: isinstance(value, property))]
    assert sorted(documented) == sorted(public)


def test_the_methods_that_a_plugin_may_define() -> None:
    documented = [codes(method)[0] for method, *_ in table("Write it") if method.endswith(")`")]
    methods: list[Callable[..., object]] = [
        NodePlugin.applies_to,
        FilterPlugin.filter,
        ScorePlugin.score,
        NodePlugin.configure,
    ]
    wanted = [f"{each.__name__}({', '.join(list(inspect.signature(each).parameters)[1:])})" for each in methods]
    assert [method for method in documented if "Status" not in method and method != "None"] == wanted


def test_the_results_of_a_filter() -> None:
    documented = [name for result, *_ in table("Write it") for name in re.findall(r"Status\.(\w+)\(", result)]
    assert documented == [name for name, value in vars(Status).items() if isinstance(value, classmethod)]


def test_how_many_reasons_are_distinguished() -> None:
    assert f"One attempt distinguishes {REASONS_REPORTED_MAX} reasons per plugin" in GUIDE.prose.replace("\n", " ")


# --- the examples -----------------------------------------------------------------------------------------------


def test_the_examples_work(tmp_path: Path) -> None:
    quiet_nodes, few_pods, a_test, *_ = GUIDE.blocks("python")
    names = _plugins(tmp_path, quiet_nodes + few_pods)
    assert list(names) == ["QuietNodes", "FewPods"]
    exec(compile(a_test, "docs/plugins.md", "exec"), names)
    names["test_a_database_finds_a_quiet_node"]()


def test_the_hint_of_the_example_queues_the_pod(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", labels={"noise": "loud"}), pod("db"))
        await world.settle()
        uid = (await world.pod("db")).metadata.uid
        await world.create(node("n2", labels={"noise": "loud"}))
        await world.settle()
        where = world.scheduler.queue.status(uid)
        assert where is not None
        assert (where.attempts, where.unschedulable_plugins) == (1, ("QuietPlease",))
        await world.patch("n2", {"metadata": {"labels": {"noise": "none"}}}, kind=NODE)
        await world.settle()
        assert await world.node_of("db") == "n2"

    play(story, plugins=(_plugins(tmp_path, GUIDE.blocks("python")[3])["QuietPlease"],))


def test_the_example_of_a_custom_kind_waits_for_one(tmp_path: Path) -> None:
    plugin = _plugins(tmp_path, GUIDE.blocks("python")[4])["Licensed"]
    (registered,) = plugin(engine_of().columns).events_to_register()

    async def story(world: World) -> None:
        await world.client.create(CUSTOM_RESOURCE_DEFINITION, "", LICENCE_DEFINITION)
        await world.create(node("n1", cpu=4), pod("web", cpu=1))
        await world.settle(60)
        assert await world.node_of("web") == ""
        licence = {"apiVersion": "example.com/v1", "kind": "Licence", "metadata": {"name": "office"}, "seats": 1}
        await world.client.create(registered.resource, "default", licence)
        await world.settle()
        assert await world.node_of("web") == "n1"

    play(story, plugins=(plugin,))


def test_the_example_of_permit_holds_a_job_together(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        job = {"job": "train", "job-size": "3"}
        await world.create(node("n1", cpu=4), pod("alone", cpu=1), *(pod(f"t{n}", cpu=1, labels=job) for n in range(2)))
        await world.settle(60)
        assert [await world.node_of(name) for name in ("alone", "t0", "t1")] == ["n1", "", ""]
        await world.create(pod("t2", cpu=1, labels=job))
        await world.settle()
        assert [await world.node_of(f"t{n}") for n in range(3)] == ["n1", "n1", "n1"]

    play(story, plugins=(_plugins(tmp_path, GUIDE.blocks("python")[5])["Together"],))


def _plugins(folder: Path, text: str) -> dict[str, Any]:
    path = folder / "rules.py"
    path.write_text(text)
    return {plugin.name: plugin for plugin in load_plugins(path)}


# --- error messages ---------------------------------------------------------------------------------------------


PATTERNS = (
    "…: there is no such file; expected a Python file that defines plugins",
    "…: is not Python: …",
    "…: fails when it is loaded: …",
    "…: found no plugin class; define one that inherits from …",
    "…: … cannot be imported: …",
    "…: … has no …",
    "…: is …, expected a class that inherits from …",
    "plugin … has no name: set …",
    "plugin … does not define …, which its extension points demand",
    "plugin … wants … in its constructor; a plugin is given only …",
    "plugin …: a plugin called … is registered already …",
    "plugin … sets …, but results of a … are not cached; …",
    "plugin … inherits from both … and …: keep one of them",
    "plugin … takes arguments in its constructor and in configure: keep one of them",
    "…: an event of … needs a view: …",
    "…: an event of … needs a view of that kind; …",
    "…: an event of … must be registered as EventResource.…",
    "…: registers … with another view than another plugin; …",
    "…PreFilterPlugin … does not exist",
    "initializing plugin …: …",
    "running … filter plugin: pod … on node …: …",
    "running Score plugins: plugin … failed with: pod … on node …: …",
    "plugin … returns an invalid score …, it should in the range of [0, 100] after normalizing",
    "… node(s) were rejected by plugin … for other reasons",
)
"""The error messages of plugins; … stands for any text. Each states what to do, so the guide does not repeat them."""


def rule(*lines: str, bases: str = "FilterPlugin", name: str = "Rule") -> str:
    """A file with one rule."""
    body = "\n    ".join([f'name = "{name}"', *lines])
    return f"""
from mooring.scheduler.framework.node_plugins import *
from mooring.scheduler.framework.plugin import *
import numpy as np

class Rule({bases}):
    {body}
"""


def registering(*, kind: str = "Widget", view: str = "Widget") -> str:
    """A file with two plugins that register a custom kind."""
    return f"""
from typing import ClassVar
from mooring.api.kinds import NODE, Kind
from mooring.api.views.meta import ApiObject
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint
{rule(FITS, "def events_to_register(self): return [ClusterEventWithHint(WIDGET, ActionType.ADD)]")}
class Widget(ApiObject):
    api_version: ClassVar[str] = "example.com/v1"
    kind: ClassVar[str] = "Widget"

class Other(Widget):
    pass

WIDGET = Kind("example.com/v1", "{kind}", "widgets", view=Widget)

class OtherRule(Rule):
    name = "OtherRule"
    def events_to_register(self): return [ClusterEventWithHint({view}, ActionType.ADD)]
"""


FITS = "def filter(self, pod, node_info): return None"
FILES: Mapping[str, str | None] = {
    "there is no such file": None,
    "is not Python": "class Rule(:",
    "fails when it is loaded": "1 / 0",
    "found no plugin class": "import os",
    "has no name": rule(FITS, name=""),
    "does not define": rule(),
    "wants … in its constructor": rule("def __init__(self, database): ...", FITS),
    "is registered already": rule(FITS, name="NodeName"),
    "are not cached": rule("filter_scope = Scope.NODE", FITS),
    "inherits from both": rule(FITS, bases="FilterPlugin, Filter"),
    "in its constructor and in configure": rule(
        "def __init__(self, arguments): ...", "def configure(self, arguments): ...", FITS
    ),
    "initializing plugin": rule("def configure(self, arguments): raise ValueError('wanted more')", FITS),
    "filter plugin": rule("def filter(self, pod, node_info): return 1 / 0"),
    "running Score plugins": rule("def score(self, pod, node_info): return 0.5", bases="ScorePlugin"),
    "returns an invalid score": rule(
        "def pre_score(self, pod, feasible): return 101",
        "def score(self, state, rows): return np.full(70, state)",
        bases="Score[int]",
    ),
    "for other reasons": rule("def filter(self, pod, node_info): return Status.unschedulable(node_info.name)"),
    "does not exist": rule(FITS),
    "needs a view:": registering(view='Kind("example.com/v1", "Part", "parts")'),
    "needs a view of that kind": registering(kind="Part"),
    "must be registered as EventResource": registering(view="NODE"),
    "with another view": registering(view='Kind("example.com/v1", "Widget", "widgets", view=Other)'),
}
"""Plugin files that cause an error, by a part of the message."""


SOURCES = {
    "cannot be imported": "no_such_package.rules:Rule",
    "has no …": "mooring.scheduler.framework.plugin:NoSuchClass",
    "expected a class": "mooring.scheduler.framework.plugin:SCORE_MAX",
}
"""Importable names that cause an error, by a part of the message."""


def message_of(path: Path, words: str) -> str:
    """The error or the scheduling message that results from the plugins of a file."""
    registry = default_registry()
    try:
        plugins = load_plugins(path)
        for plugin in plugins:
            registry.register(plugin)
        enabled = ["Other"] if words == "does not exist" else [plugin.name for plugin in plugins]
        configuration = enabled_if_unmentioned(load_configuration(None), enabled)
        engine = Engine(configuration, entropy=Entropy(1), registry=registry)
        registered_kinds(cycle.profile for cycle in engine.cycles.values())
    except (PluginFileError, BadPluginError, ConfigurationError) as error:
        return str(error)
    for number in range(70):
        engine.put(node(f"n{number}"))
    return decide(engine, pod()).message or ""


def matches(pattern: str, message: str) -> bool:
    return re.search(".+".join(re.escape(part) for part in pattern.strip("…").split("…")), message) is not None


@pytest.mark.parametrize("words", FILES)
def test_files_cause_these_errors(words: str, tmp_path: Path) -> None:
    path = tmp_path / "rule.py"
    text = FILES[words]
    if text is not None:
        path.write_text(text)
    message = message_of(path, words)
    expected = [pattern for pattern in PATTERNS if words in pattern]
    assert [pattern for pattern in PATTERNS if matches(pattern, message)] == expected, message
    assert len(expected) == 1


@pytest.mark.parametrize("words", SOURCES)
def test_importable_names_cause_these_errors(words: str) -> None:
    with pytest.raises(PluginFileError) as caught:
        plugins_from(SOURCES[words])
    [expected] = [pattern for pattern in PATTERNS if words in pattern]
    assert matches(expected, str(caught.value)), caught.value


def test_every_error_is_tested() -> None:
    assert [pattern for pattern in PATTERNS if not any(words in pattern for words in (*FILES, *SOURCES))] == []
