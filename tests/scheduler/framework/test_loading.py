"""Users' plugins from files, importable classes and installed packages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from textwrap import dedent

import pytest

from mooring.scheduler.catalogue import default_registry
from mooring.scheduler.config import load_configuration
from mooring.scheduler.config.types import ExtensionPoint
from mooring.scheduler.framework import loading
from mooring.scheduler.framework.loading import (
    PluginFileError,
    enabled_if_unmentioned,
    installed_plugins,
    load_plugins,
    plugins_from,
)
from mooring.scheduler.framework.registry import BadPluginError, Registry
from tests.builders import node, pod
from tests.scheduler.config.builders import configuration
from tests.scheduler.harness import decide, engine_of

HEAD = """
    from mooring.scheduler.framework.node_plugins import FilterPlugin, ScorePlugin, Status
    """


def rule(name: str) -> str:
    """A file with one plugin that rejects nobody."""
    return f"""
    from mooring.scheduler.framework.node_plugins import FilterPlugin

    class R(FilterPlugin):
        name = "{name}"
        def filter(self, pod, node_info): return None
    """


Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a plugin file, and says where."""

    def written(text: str) -> Path:
        path = tmp_path / "rules.py"
        path.write_text(dedent(text))
        return path

    return written


# --- what a file offers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            """
    class B(FilterPlugin):
        name = "B"
        def filter(self, pod, node_info): return None
    class A(ScorePlugin):
        name = "A"
        def score(self, pod, node_info): return 0
    """,
            ["B", "A"],
            id="its classes, in its order",
        ),
        pytest.param(
            """
    class Common(FilterPlugin):
        def filter(self, pod, node_info): return Status.unschedulable(self.name)
    class Left(Common):
        name = "Left"
    class Right(Common):
        name = "Right"
    """,
            ["Left", "Right"],
            id="not what they have in common",
        ),
        pytest.param(
            """
    class First(FilterPlugin):
        name = "First"
        def filter(self, pod, node_info): return None
    class Second(First):
        name = "Second"
    """,
            ["First", "Second"],
            id="a plugin that another one builds on",
        ),
        pytest.param(
            """
    from mooring.scheduler.plugins.node_name import NodeName
    class Mine(NodeName):
        name = "Mine"
    Alias = Mine
    """,
            ["Mine"],
            id="not what it imports, and nothing twice",
        ),
    ],
)
def test_a_file_offers(body: str, expected: list[str], write: Write) -> None:
    assert [plugin.name for plugin in load_plugins(write(HEAD + body))] == expected


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        pytest.param(
            """
    class Nameless(FilterPlugin):
        def filter(self, pod, node_info): return None
    """,
            "plugin Nameless .* has no name",
            id="a class without a name",
        ),
        pytest.param(
            """
    class Unfinished(FilterPlugin):
        name = "Unfinished"
    """,
            "plugin Unfinished .* does not define filter",
            id="a class without its method",
        ),
        pytest.param(
            """
    class Greedy(FilterPlugin):
        name = "Greedy"
        def __init__(self, columns, database): ...
        def filter(self, pod, node_info): return None
    """,
            "plugin Greedy .* wants database in its constructor",
            id="a class that wants what nobody gives",
        ),
        pytest.param(
            """
    class NodeName(FilterPlugin):
        name = "NodeName"
        def filter(self, pod, node_info): return None
    """,
            "a plugin called 'NodeName' is registered already",
            id="a class with the name of a built-in plugin",
        ),
    ],
)
def test_a_bad_class_is_loaded_so_that_the_registry_can_reject_it(body: str, complaint: str, write: Write) -> None:
    (plugin,) = load_plugins(write(HEAD + body))
    with pytest.raises(BadPluginError, match=complaint):
        default_registry().register(plugin)


def test_what_a_file_offers_works_in_a_profile(write: Write) -> None:
    path = write(
        """
        from __future__ import annotations

        from dataclasses import dataclass
        from typing import Annotated

        import msgspec
        from mooring.scheduler.framework.node_plugins import FilterPlugin, Status


        @dataclass
        class Word:
            text: str


        class Arguments(msgspec.Struct):
            word: Annotated[str, msgspec.Meta(min_length=1)] = "no"


        class Never(FilterPlugin):
            name = "Never"

            def configure(self, arguments):
                self.word = Word(msgspec.convert(arguments, Arguments).word)

            def filter(self, pod, node_info):
                return Status.unschedulable(self.word.text)
        """
    )
    registry = default_registry()
    for plugin in load_plugins(path):
        registry.register(plugin)
    written = configuration(
        profiles=[
            {
                "plugins": {"multiPoint": {"enabled": [{"name": "Never"}]}},
                "pluginConfig": [{"name": "Never", "args": {"word": "never"}}],
            }
        ]
    )
    status = decide(engine_of(node("n1"), config=written, registry=registry), pod()).node_to_status["n1"]
    assert status is not None
    assert (status.plugin, status.reasons) == ("Never", ("never",))


def test_a_file_that_changed_is_read_as_it_is_now(write: Write) -> None:
    assert [plugin.name for plugin in load_plugins(write(rule("Old")))] == ["Old"]
    assert [plugin.name for plugin in load_plugins(write(rule("New")))] == ["New"]


def test_two_files_of_one_name_do_not_get_in_each_others_way(tmp_path: Path) -> None:
    registry = Registry()
    for folder in ("left", "right"):
        path = tmp_path / folder / "json.py"
        path.parent.mkdir()
        path.write_text(dedent(rule(folder)))
        for plugin in load_plugins(path):
            registry.register(plugin)
    assert registry.implements("left", ExtensionPoint.FILTER)
    assert registry.implements("right", ExtensionPoint.FILTER)
    assert sys.modules["json"].__name__ == "json"


def test_nothing_is_written_beside_the_file(write: Write) -> None:
    path = write(rule("R"))
    load_plugins(path)
    assert [file.name for file in path.parent.iterdir()] == ["rules.py"]


# --- rejections ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("x = 1\ndef broken(:\n", "{path}:2: is not Python: invalid syntax", id="a syntax error"),
        pytest.param("x = 1\n  y = 2\n", "{path}:2: is not Python: unexpected indent", id="a wrong indent"),
        pytest.param(
            "x = 1\nimport no_such_library\n",
            "{path}:2: fails when it is loaded: ModuleNotFoundError: No module named 'no_such_library'",
            id="a library that is not there",
        ),
        pytest.param(
            "def f():\n    return 1 / 0\nf()\n",
            "{path}:2: fails when it is loaded: ZeroDivisionError: division by zero",
            id="an exception, at the innermost line",
        ),
        pytest.param(
            "import json\n\njson.loads('{')\n",
            "{path}:3: fails when it is loaded: JSONDecodeError: "
            "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
            id="an exception inside of a library, at the line that called it",
        ),
        pytest.param("raise SystemExit\n", "{path}:1: fails when it is loaded: SystemExit", id="a program that ends"),
        pytest.param(
            "import os\n",
            "{path}: found no plugin class; define one that inherits from FilterPlugin or ScorePlugin "
            "(mooring.scheduler.framework.node_plugins), or from Filter, Score, … (mooring.scheduler.framework.plugin)",
            id="a file without plugins",
        ),
        pytest.param(
            "from mooring.scheduler.plugins.node_name import NodeName\n",
            "{path}: found no plugin class; define one that inherits from FilterPlugin or ScorePlugin "
            "(mooring.scheduler.framework.node_plugins), or from Filter, Score, … (mooring.scheduler.framework.plugin)",
            id="a file that only imports a plugin",
        ),
    ],
)
def test_a_file_is_rejected_for(text: str, complaint: str, write: Write) -> None:
    path = write(text)
    before = set(sys.modules)
    with pytest.raises(PluginFileError) as caught:
        load_plugins(path)
    assert str(caught.value) == complaint.format(path=path)
    if "loaded" in complaint:
        assert not [name for name in set(sys.modules) - before if name.startswith("_mooring_plugins_")]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        pytest.param(
            lambda path: None, "there is no such file; expected a Python file that defines plugins", id="not there"
        ),
        pytest.param(Path.mkdir, "is a folder; expected one Python file that defines plugins", id="a folder"),
        pytest.param(lambda path: path.write_bytes(b"\x00\x01"), "is not Python: ", id="a binary file"),
        pytest.param(lambda path: path.write_bytes(b"x = '\xff'\n"), "is not Python: ", id="a file in no encoding"),
    ],
)
def test_a_path_is_rejected_that_is(make: Callable[[Path], object], complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.py"
    make(path)
    with pytest.raises(PluginFileError) as caught:
        load_plugins(path)
    assert str(caught.value).startswith(str(path))
    assert complaint in str(caught.value)


def test_a_file_that_breaks_leaves_the_one_before_it_in_place(write: Write) -> None:
    (good,) = load_plugins(write(rule("R")))
    with pytest.raises(PluginFileError):
        load_plugins(write("raise ValueError"))
    assert sys.modules[good.__module__].__dict__["R"] is good


# --- enabling ---------------------------------------------------------------------------------------------------


def profile(name: str = "default-scheduler", **fields: object) -> dict[str, object]:
    return {"schedulerName": name, **fields}


@pytest.mark.parametrize(
    ("profiles", "enabled_in"),
    [
        pytest.param(None, {"default-scheduler": ("Mine", 1)}, id="no configuration: in the default profile"),
        pytest.param(
            [profile("batch"), profile()],
            {"batch": None, "default-scheduler": ("Mine", 1)},
            id="several profiles: in the default one",
        ),
        pytest.param(
            [profile("batch"), profile("web")], {"batch": ("Mine", 1), "web": None}, id="no default one: in the first"
        ),
        pytest.param(
            [profile(pluginConfig=[{"name": "Mine", "args": {}}])],
            {"default-scheduler": ("Mine", 1)},
            id="arguments alone enable nothing, and forbid nothing",
        ),
        pytest.param(
            [profile(), profile("batch", plugins={"multiPoint": {"enabled": [{"name": "Mine", "weight": 7}]}})],
            {"default-scheduler": None, "batch": ("Mine", 7)},
            id="enabled by the configuration: as it says",
        ),
        pytest.param(
            [profile(plugins={"filter": {"enabled": [{"name": "Mine"}]}})],
            {"default-scheduler": None},
            id="enabled at one point: only there",
        ),
        pytest.param(
            [profile(plugins={"score": {"disabled": [{"name": "Mine"}]}})],
            {"default-scheduler": None},
            id="disabled: not enabled behind its back",
        ),
    ],
)
def test_a_plugin_is_enabled(
    profiles: list[dict[str, object]] | None, enabled_in: dict[str, tuple[str, int] | None]
) -> None:
    written = configuration(profiles=profiles) if profiles is not None else None
    completed = enabled_if_unmentioned(load_configuration(written), ["Mine"])
    found = {
        profile.scheduler_name: next(
            ((p.name, p.weight) for p in profile.plugins.multi_point.enabled if p.name == "Mine"), None
        )
        for profile in completed.profiles
    }
    assert found == enabled_in


def test_enabling_nothing_changes_nothing() -> None:
    plain = load_configuration(None)
    assert enabled_if_unmentioned(plain, []) == plain


RULE = """
from mooring.scheduler.framework.node_plugins import FilterPlugin

class QuietHours(FilterPlugin):
    name = "QuietHours"
    def filter(self, pod, node_info):
        return None

NOT_A_PLUGIN = 42
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that can be imported."""
    (tmp_path / "acme_rules").mkdir()
    (tmp_path / "acme_rules" / "__init__.py").write_text("")
    (tmp_path / "acme_rules" / "placement.py").write_text(RULE)
    (tmp_path / "acme_rules" / "broken.py").write_text("import no_such_library")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("acme_rules")]:
        del sys.modules[name]


def test_a_class_is_named_by_its_module(package: Path) -> None:
    (plugin,) = plugins_from("acme_rules.placement:QuietHours")
    assert plugin.name == "QuietHours"


def test_a_file_is_named_by_its_path(package: Path) -> None:
    (plugin,) = plugins_from(str(package / "acme_rules" / "placement.py"))
    assert plugin.name == "QuietHours"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("acme_rules.placement:Missing", "acme_rules.placement:Missing: acme_rules.placement has no Missing"),
        ("acme_rules.nowhere:Rule", "acme_rules.nowhere cannot be imported: ModuleNotFoundError"),
        ("acme_rules.broken:Rule", "No module named 'no_such_library'"),
        (
            "acme_rules.placement:NOT_A_PLUGIN",
            "is 42, expected a class that inherits from FilterPlugin, ScorePlugin, …",
        ),
        ("no-such-file.py", "no-such-file.py: there is no such file"),
    ],
)
def test_what_cannot_be_had_is_reported(package: Path, source: str, text: str) -> None:
    with pytest.raises(PluginFileError) as raised:
        plugins_from(source)
    assert text in str(raised.value)


def test_installed_packages_offer_plugins(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch, "acme_rules.placement:QuietHours")
    assert [plugin.name for plugin in installed_plugins()] == ["QuietHours"]


def test_an_entry_point_that_cannot_be_imported_is_named(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch, "acme_rules.broken:Rule")
    with pytest.raises(PluginFileError, match=r"entry point quiet of some package \(acme_rules.broken:Rule\)"):
        installed_plugins()


def offered(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    points = EntryPoints([EntryPoint("quiet", value, loading.ENTRY_POINT_GROUP)])
    monkeypatch.setattr(loading, "entry_points", lambda group: points.select(group=group))
