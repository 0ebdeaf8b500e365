"""docs/parity.md: each claim has a test, and no plugin, argument or recording is missing.

Each row of the known differences from kube-scheduler names a test here. If it fails, the page is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from prometheus_client import generate_latest

from mooring.api.cel import DeviceSelectorError, compile_device_selector
from mooring.api.views.meta import ApiObject
from mooring.api.views.pod import Pod
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run_real
from mooring.scheduler.catalogue import BUILT_IN, default_registry
from mooring.scheduler.config import ConfigurationError, load_configuration
from mooring.scheduler.config.types import ARGUMENTS, ExtensionPoint
from mooring.scheduler.engine import Engine
from mooring.scheduler.extenders.client import ExtenderTransport
from mooring.scheduler.extenders.extender import ExtenderError
from mooring.scheduler.reporting.reports import SAMPLED_ONE_IN
from tests.builders import ZONE, disk, node, pod, pods_like, spread
from tests.docs.pages import ROOT, Row, names_of_tests, page
from tests.golden.recordings import FAMILIES, recorded
from tests.scheduler.config.builders import KUBERNETES, configuration, plugins, with_arguments, with_profile
from tests.scheduler.extenders.builders import extender
from tests.scheduler.harness import decide, engine_of
from tests.scheduler.world import World, play

PARITY = page("docs/parity.md")
_RECORDINGS = "recordings: "
_TEST = re.compile(r"`([\w/]+\.py)::([^`]+)`")
_UNSHOWN = "–"
"""For what does not exist yet, and so has nothing to show."""


def claims() -> list[Row]:
    return [row for row in PARITY.rows if row.section != "Feature gates"]


def test_every_plugin_has_a_row() -> None:
    named = {name for row in PARITY.rows if row.section == "Plugins" for name in re.findall(r"`(\w+)`", row.cells[0])}
    assert {plugin.name for plugin in BUILT_IN} - named == set()


def test_every_argument_is_in_a_row_of_its_plugin() -> None:
    said = _said_by_plugin()
    missing = [
        f"{plugin}.{field.encode_name}"
        for plugin, arguments in ARGUMENTS.items()
        for field in msgspec.structs.fields(arguments)
        if f"`{field.encode_name}`" not in said[plugin]
    ]
    assert missing == []


def _said_by_plugin() -> dict[str, str]:
    """All that is said of each plugin; of preemption there is a table of its own."""
    said: dict[str, str] = {}
    plugin = ""
    for row in PARITY.rows:
        if row.section == "Plugins":
            plugin = row.cells[0].strip("`") or plugin
        elif row.section == "Preemption":
            plugin = "DefaultPreemption"
        else:
            continue
        said[plugin] = said.get(plugin, "") + " ".join(row.cells[1:] if row.section == "Plugins" else row.cells)
    return said


def test_every_claim_is_shown_by_something() -> None:
    unshown = [row for row in claims() if not _families_of(row) and not _TEST.search(row.cells[-1])]
    assert [row.cells for row in unshown if not _may_be_unshown(row)] == []


def _may_be_unshown(row: Row) -> bool:
    return (row.cells[-1] == _UNSHOWN and row.cells[-2].startswith("not yet")) or "(#preemption)" in row.cells[1]


def test_recordings_that_are_named_exist() -> None:
    assert [(row.cells, name) for row in claims() for name in _families_of(row) if name not in FAMILIES] == []


def _families_of(row: Row) -> list[str]:
    shown_by = row.cells[-1]
    return shown_by.removeprefix(_RECORDINGS).split(", ") if shown_by.startswith(_RECORDINGS) else []


@pytest.mark.parametrize("named", sorted(set(_TEST.findall(PARITY.prose))), ids="::".join)
def test_tests_that_are_named_exist(named: tuple[str, str]) -> None:
    file, test = named
    path = ROOT / "tests" / file
    assert path.exists(), f"there is no tests/{file}"
    assert test in names_of_tests(path), f"tests/{file} has no {test}"


def test_known_differences_are_numbered_and_shown() -> None:
    written = PARITY.prose.partition("## Known differences")[2]
    items = re.split(r"^(\d+)\. ", written, flags=re.MULTILINE)[1:]
    assert [int(number) for number in items[::2]] == list(range(1, len(items) // 2 + 1))
    assert [text[:60] for text in items[1::2] if not _TEST.search(text)] == []
    referred = {int(number) for number in re.findall(r"\[(\d+)\]\(#known-differences\)", PARITY.prose)}
    assert referred <= set(range(1, len(items) // 2 + 1))


def test_the_recordings_are_counted_right() -> None:
    verdicts = [verdict for family in FAMILIES for _, verdict in recorded(family)]
    pods = sum(len(verdict.get("results", ())) for verdict in verdicts)
    said = " ".join(PARITY.text.split())
    assert f"passed on {len(verdicts):,} clusters with {pods:,} pending pods" in said


def test_a_gate_is_named_once_and_on_or_off() -> None:
    rows = [row for row in PARITY.rows if row.section == "Feature gates"]
    gates = [gate for row in rows for gate in re.findall(r"`(\w+)`", row.cells[0])]
    assert sorted(gates) == sorted(set(gates))
    assert {row.cells[1] for row in rows} == {"on", "off"}


CAME_BACK = frozenset(
    (
        "NodeLabel",
        "NodeResourcesLeastAllocated",
        "NodeResourcesMostAllocated",
        "RequestedToCapacityRatio",
        "SelectorSpread",
        "ServiceAffinity",
    )
)
"""Plugins that kube-scheduler has removed."""

# Chance


def test_a_tie_goes_where_the_seed_says() -> None:
    chosen = {seed: _where_five_pods_go(seed) for seed in range(20)}
    assert chosen == {seed: _where_five_pods_go(seed) for seed in range(20)}
    assert len(set(map(tuple, chosen.values()))) > 1


def _where_five_pods_go(seed: int) -> list[str | None]:
    engine = Engine(load_configuration(None), entropy=Entropy(seed))
    for name in "abcdef":
        engine.put(node(name))
    return [engine.decide(engine.record(pod(f"p{number}"))).node_name for number in range(5)]


@pytest.mark.parametrize(("offset", "nominated"), [(0, "a"), (1, "b"), (2, "c")])
def test_preemption_starts_where_the_seed_says(offset: int, nominated: str) -> None:
    one_candidate = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1}
    config = load_configuration(with_arguments("DefaultPreemption", one_candidate))
    engine = Engine(config, entropy=Loaded(offset))
    for name in ("c", "a", "b"):
        engine.put(node(name, cpu=1))
        engine.put(pod(f"on-{name}", cpu=1, on=name))
    plan = decide(engine, pod(cpu=1, priority=1)).preemption
    assert plan is not None
    assert plan.node_name == nominated


class Loaded(Entropy):
    """Entropy that always returns the same number."""

    def __init__(self, side: int) -> None:
        super().__init__(seed=0)
        self._side = side

    def integer_below(self, limit: int) -> int:
        return self._side % limit

    def fork(self, name: str) -> Loaded:
        return self


# How many nodes are looked at


@pytest.mark.parametrize(
    ("percentage", "scored"),
    [
        pytest.param(None, 300, id="not set: all"),
        pytest.param(100, 300, id="all"),
        pytest.param(40, 120, id="a part"),
        pytest.param(0, 144, id="what kube-scheduler does if nobody says"),
    ],
)
def test_every_node_is_scored_unless_a_percentage_is_set(percentage: int | None, scored: int) -> None:
    nodes = [node(f"n{number:03}") for number in range(300)]
    decision = decide(engine_of(*nodes, config=configuration(percentageOfNodesToScore=percentage)), pod())
    assert len(decision.scores) == scored


# Extenders


def test_a_dry_run_asks_no_extenders() -> None:
    nobody_listens_there = {"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"}
    config = configuration(extenders=[nobody_listens_there])
    assert decide(engine_of(node("n1"), config=config), pod()).node_name == "n1"


def test_extenders_are_not_asked_through_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    unknown = extender("http://no-such-host.invalid", filterVerb="filter")

    async def ask() -> bytes:
        async with ExtenderTransport([unknown]) as transport:
            return await transport.send(unknown, "filter", b"{}")

    with pytest.raises(ExtenderError, match=r"lookup no-such-host\.invalid"):
        run_real(ask())


# Devices and groups


@pytest.mark.parametrize("name", ["GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"])
def test_plugins_of_gates_that_are_off_do_not_exist(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f'"{name}" does not exist'):
        engine_of(config=with_profile(plugins={"multiPoint": {"enabled": plugins(name)}}))


# Where plugins can be enabled


def test_our_plugins_take_part_where_those_of_kubernetes_do() -> None:
    ours = default_registry().implements
    pairs = [(plugin.name, point) for plugin in BUILT_IN if plugin.name not in CAME_BACK for point in ExtensionPoint]
    assert [pair for pair in pairs if KUBERNETES(*pair) != ours(*pair)] == []


def test_no_plugin_takes_part_in_the_points_of_gates_that_are_off() -> None:
    with pytest.raises(ConfigurationError, match='plugin "NodeResourcesFit" does not extend'):
        engine_of(config=with_profile(plugins={"placementScore": {"enabled": plugins("NodeResourcesFit")}}))


def test_plugins_that_came_back_are_off_unless_they_are_named() -> None:
    by_default = engine_of().cycles["default-scheduler"].profile.plugins
    assert CAME_BACK.isdisjoint(by_default)
    signature = {"name": "RequestedToCapacityRatio", "args": {"shape": [{"utilization": 0, "score": 10}]}}
    named = with_profile(plugins={"multiPoint": {"enabled": plugins(*sorted(CAME_BACK))}}, pluginConfig=[signature])
    assert set(engine_of(config=named).cycles["default-scheduler"].profile.plugins) - set(by_default) == CAME_BACK


@pytest.mark.parametrize(
    ("name", "cluster", "view"),
    [
        pytest.param("NodeResourcesFit", [node(cpu=1)], pod(cpu=2), id="a filter that reads rows"),
        pytest.param("NodePorts", [node(), pod("o", ports=["80"], on="n1")], pod(ports=["80"]), id="another one"),
        pytest.param("PodTopologySpread", [node()], pod(spread=[spread("rack")]), id="spreading"),
        pytest.param("InterPodAffinity", [node()], pod(near=[pods_like(ZONE, app="web")]), id="affinity"),
        pytest.param(
            "VolumeRestrictions",
            [node(), pod("o", volumes=[disk("d")], on="n1")],
            pod(volumes=[disk("d")]),
            id="volumes",
        ),
    ],
)
def test_a_filter_whose_pre_filter_is_disabled_is_asked_all_the_same(
    name: str, cluster: Sequence[ApiObject], view: Pod
) -> None:
    without: dict[str, Any] = with_profile(plugins={"preFilter": {"disabled": plugins(name)}})
    assert decide(engine_of(*cluster), view).node_name is None
    assert decide(engine_of(*cluster, config=without), view).node_name is None


# Limits


def test_a_pod_with_too_many_resources_is_refused_in_words() -> None:
    resources = {f"example.com/r{number}": 1 for number in range(61)}
    message = decide(engine_of(node()), pod(others=resources)).message or ""
    assert "pod requests 61 different resources, more than the filter can distinguish" in message


# The running scheduler


def test_a_pod_of_the_same_name_starts_anew() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1))
        for _ in range(2):
            await world.create(pod("web", cpu=2))
            await world.settle(400)
            where = world.scheduler.queue.status((await world.pod("web")).metadata.uid)
            assert where is not None
            assert where.attempts == 2, "at once, and after five minutes"
            await world.delete("web")

    play(story)


def test_deleted_pods_are_not_counted_as_unschedulable() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=2))
        await world.settle()
        counted = 'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} 1.0'
        assert counted in scraped(world)
        await world.delete("web")
        await world.settle()
        assert [line for line in scraped(world) if line.startswith("scheduler_unschedulable_pods{")] == []

    play(story)


def test_plugins_are_timed_in_a_sample_of_the_cycles() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1000, pods=1000), *(pod(f"p{number}", cpu=1) for number in range(400)))
        await world.settle()
        line = 'scheduler_plugin_evaluation_total{extension_point="PreFilter",plugin="InterPodAffinity"'
        [sampled] = [float(each.split()[-1]) for each in scraped(world) if each.startswith(line)]
        assert 400 / SAMPLED_ONE_IN / 2 < sampled < 400 / SAMPLED_ONE_IN * 2

    play(story)


def test_metrics_that_mean_something_else() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1), pod("big", cpu=2))
        await world.settle()
        told = scraped(world)
        of_work = {line.split("{")[1] for line in told if line.startswith("scheduler_goroutines{")}
        assert of_work == {f'operation="{name}"}} 0.0' for name in ("binding", "preemption", "status")}

    play(story)


def test_metrics_that_are_not_there() -> None:
    """Metrics that the page lists as missing do not exist."""
    named = r"These are not there: (.*?)\.\s+`docs/test_parity"
    (sentence,) = re.findall(named, page("docs/parity.md").text, re.DOTALL)
    missing = re.findall(r"`([a-z_]+)`", sentence)
    assert len(missing) == 12

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle()
        told = "\n".join(scraped(world))
        assert [name for name in missing if f"scheduler_{name}" in told] == []

    play(story)


def scraped(world: World) -> list[str]:
    return generate_latest(world.scheduler.metrics.registry).decode().splitlines()


# Expressions


@pytest.mark.parametrize(("depth", "is_compiled"), [(120, True), (200, False)])
def test_nesting_is_refused_earlier(depth: int, is_compiled: bool) -> None:
    told = error_of("(" * depth + "true" + ")" * depth)
    assert (told == "") is is_compiled
    assert is_compiled or "expression recursion limit exceeded: 250" in told


def test_literals_of_structs_are_refused() -> None:
    assert "undeclared reference to 'Box'" in error_of("Box{size: 1} == 1")


def test_after_a_syntax_error_no_other_is_reported() -> None:
    assert "undeclared reference to 'nobody'" in error_of("nobody == 1")
    told = error_of("nobody == 1 +")
    assert "Syntax error" in told
    assert "undeclared" not in told


def error_of(expression: str) -> str:
    try:
        compile_device_selector(expression)
    except DeviceSelectorError as error:
        return str(error)
    return ""
