"""The console in a real browser: each page, live updates, keyboard, hostile texts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.running import Up, running
from tests.console.browser import PROGRAM, Browser
from tests.console.clusters import create_deployment, create_pod, data, nodes
from tests.waiting import wait_until

OPTIONS = ("--ephemeral", "--nodes", "6", "--zones", "a,b", "--cpu", "10")
HOSTILE = "<img src=x onerror=document.title='run'>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests: starting it takes longer than most of them."""
    assert PROGRAM is not None, "there is no browser here, and this test should have been deselected"
    with Browser(PROGRAM, tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@contextmanager
def seeded(folder: Path) -> Iterator[Up]:
    """A cluster with a placed and a pending pod."""
    with running(folder, *OPTIONS) as up:
        create_pod(up, "small", "5")
        create_pod(up, "large", "99")
        wait_until(lambda: (data(up, "overview") or {}).get("rejections"), why=up.log)
        wait_until(lambda: not any(nodes(up)["flags"]))  # new nodes have taints for a moment
        yield up


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with seeded(tmp_path_factory.mktemp("shared")) as up:
        yield up


def log_in(up: Up, browser: Browser) -> Up:
    """The browser at the overview of a cluster."""
    browser.problems.clear()
    browser.resize(1280, 900)
    browser.open(up.ask("GET", "/console/link").body.decode().strip())
    browser.wait("document.querySelector('.map canvas')?.style.height && location.hash === ''")
    return up


@pytest.fixture
def seen(shared: Up, browser: Browser) -> Up:
    """A cluster for tests that change nothing."""
    return log_in(shared, browser)


@pytest.fixture
def up(tmp_path: Path, browser: Browser) -> Iterator[Up]:
    """A cluster for one test."""
    with seeded(tmp_path) as up:
        yield log_in(up, browser)
        browser.open("about:blank")  # a page of this cluster would ask on


def go(browser: Browser, address: str, text: str) -> None:
    """Open a page, and wait until it shows the text."""
    browser.evaluate(f"location.hash = {json.dumps(address)}")
    browser.wait(f"document.querySelector('main').innerText.includes({json.dumps(text)})")


def control(label: str, kind: str) -> str:
    """An expression for the control of this kind with a label that begins so."""
    labels = "[...document.querySelectorAll('label')]"
    return f"{labels}.find((each) => each.textContent.startsWith({json.dumps(label)})).querySelector('{kind}')"


def choose(browser: Browser, label: str, value: str) -> None:
    """Choose a value of the selection with this label."""
    browser.evaluate(f"{control(label, 'select')}.value = {json.dumps(value)}")
    browser.evaluate(f"{control(label, 'select')}.dispatchEvent(new Event('change'))")


def fill(browser: Browser, label: str, value: str) -> None:
    """Type into the field with this label."""
    browser.evaluate(f"{control(label, 'input')}.value = {json.dumps(value)}")
    browser.evaluate(f"{control(label, 'input')}.dispatchEvent(new Event('input'))")


def press_button(browser: Browser, text: str) -> None:
    buttons = "[...document.querySelectorAll('button')]"
    browser.evaluate(f"{buttons}.find((each) => each.textContent.trim() === {json.dumps(text)}).click()")


def rows(browser: Browser) -> list[str]:
    """The names in the first column of the queue, as far as rows exist."""
    names = browser.evaluate("[...document.querySelectorAll('.virtual tbody a')].map((each) => each.textContent)")
    return [str(name) for name in names]


def test_the_overview_shows_the_cluster_and_follows_it(up: Up, browser: Browser) -> None:
    browser.wait("document.body.innerText.includes('Insufficient cpu: 1')")
    assert browser.evaluate("document.querySelector('.map canvas').getAttribute('aria-label')").startswith(
        "Map of 6 nodes."
    )
    browser.wait("document.querySelectorAll('.chart canvas').length === 3")
    assert browser.evaluate("document.querySelector('.tile span').textContent").startswith("1 so far")
    create_pod(up, "second", "5")
    browser.wait("document.querySelector('.tile span').textContent.startsWith('2 so far')")
    browser.wait(r"/\d+\sms/.test(document.querySelectorAll('.tile b')[1].textContent)")
    assert browser.problems == []


def test_the_map_has_metrics_groups_and_orders(seen: Up, browser: Browser) -> None:
    image = "document.querySelector('.map canvas').toDataURL()"
    requested = browser.evaluate(image)
    # The placed pod requests half of the cpu of its node and no memory.
    for metric, is_as_requested in (("memory", False), ("cpu", True), ("free", False), ("fragmentation", True)):
        choose(browser, "Show", metric)
        browser.wait(f"({image} === {json.dumps(requested)}) === {json.dumps(is_as_requested)}")
    choose(browser, "Sort by", "level")
    node = data(seen, "pod?pod=default/small")["decisions"][0]["node"]
    is_first_group = data(seen, f"node?node={node}")["zone"] == "a"
    box = json.loads(browser.evaluate("JSON.stringify(document.querySelector('.map canvas').getBoundingClientRect())"))
    height = browser.evaluate("document.querySelector('.map canvas').height")
    choose(browser, "Group by", "kubernetes.io/hostname")
    browser.wait(f"document.querySelector('.map canvas').height > {height}")
    choose(browser, "Group by", "")
    browser.wait(f"document.querySelector('.map canvas').height === {height}")
    browser.click(box["x"] + 10, box["y"] + (30 if is_first_group else height / 2 + 30))
    browser.wait(f"location.hash === '#/node/{node}'")
    assert browser.problems == []


def test_the_map_opens_a_node_by_click_and_by_keyboard(seen: Up, browser: Browser) -> None:
    place = browser.evaluate("JSON.stringify(document.querySelector('.map canvas').getBoundingClientRect())")
    box = json.loads(place)
    browser.click(box["x"] + 10, box["y"] + 30)
    browser.wait("location.hash.startsWith('#/node/node-')")
    browser.wait("document.querySelector('h1')?.textContent.startsWith('Node node-')")
    browser.press("o")
    browser.wait("document.querySelector('.map canvas')?.style.height")
    browser.evaluate("document.querySelector('.map canvas').focus()")
    browser.press("ArrowRight")
    browser.wait("/^node-.*cpu \\d+ %/.test(document.querySelector('.map .hint').textContent)")
    browser.press("Enter")
    browser.wait("location.hash.startsWith('#/node/node-')")
    assert browser.problems == []


def test_keys_work_from_anywhere_and_not_behind_the_help(seen: Up, browser: Browser) -> None:
    browser.press("ArrowRight")
    browser.wait("document.activeElement === document.querySelector('.map canvas')")
    browser.wait("/^node-.*cpu \\d+ %/.test(document.querySelector('.map .hint').textContent)")
    browser.press("?")
    browser.wait("document.querySelector('dialog').open")
    browser.press("q")
    assert browser.evaluate("location.hash") == ""
    press_button(browser, "Close")
    browser.press("i")
    browser.wait("document.querySelector('textarea')")
    browser.press("/")
    browser.press("x")
    browser.evaluate("document.querySelector('textarea').focus()")
    browser.press("Escape")
    assert browser.evaluate("document.activeElement === document.body")
    assert browser.evaluate("document.querySelector('input[type=search]').value") == "x", (
        "the filter is not what was left"
    )
    browser.press("w")
    browser.wait("location.hash === '#/workloads'")
    assert browser.problems == []


def test_the_queue_is_filtered_by_keyboard(up: Up, browser: Browser) -> None:
    create_pod(up, "huge", "98")
    browser.press("q")
    browser.wait("document.querySelectorAll('.virtual tbody a').length === 2")
    assert "Insufficient cpu" in browser.text()
    browser.press("/")
    assert browser.evaluate("document.activeElement.type") == "search"
    for letter in "hug":
        browser.press(letter)
    browser.wait("document.querySelectorAll('.virtual tbody a').length === 1")
    assert rows(browser) == ["default/huge"]
    browser.press("Escape")
    browser.wait("document.querySelectorAll('.virtual tbody a').length === 2")
    press_button(browser, "Pod")
    browser.wait("document.querySelector('th[aria-sort=ascending]')")
    browser.wait("document.querySelector('.virtual tbody a').textContent === 'default/huge'")
    press_button(browser, "Pod ▲")
    browser.wait("document.querySelector('.virtual tbody a').textContent === 'default/large'")
    browser.press("ArrowDown")
    browser.wait("document.querySelector('.virtual .selected')")
    browser.press("Enter")
    browser.wait("location.hash === '#/pod/default/large'")
    browser.press("?")
    browser.wait("document.querySelector('dialog').open")
    assert browser.problems == []


def test_a_long_queue_has_rows_only_where_they_are_seen(up: Up, browser: Browser) -> None:
    create_deployment(up, "many", 400, "50")
    wait_until(lambda: data(up, "queue?limit=1")["total"] == 401, why=up.log)
    go(browser, "#/queue", "default/large")
    press_button(browser, "Pod")
    browser.wait("document.querySelector('table').getAttribute('aria-rowcount') === '402'")
    browser.wait("document.querySelector('.virtual tbody a')?.textContent === 'default/large'")
    assert len(rows(browser)) < 60
    browser.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    last = data(up, "queue?sort=pod&offset=400")["pods"][0]["pod"]
    browser.wait(f"document.querySelector('main').innerText.includes({json.dumps(last)})")
    assert len(rows(browser)) < 60
    assert browser.problems == []


def test_a_pod_has_its_timeline_and_attempts(seen: Up, browser: Browser) -> None:
    go(browser, "#/pod/default/large", "0/6 nodes are available")
    browser.wait("document.querySelector('.rejected-by').innerText.includes('NodeResourcesFit')")
    browser.wait("document.querySelector('main').innerText.includes('89 cpu more')")
    browser.wait("document.querySelector('.life').innerText.includes('created')")
    assert "makes room on no node" in browser.text()
    press_button(browser, "Find the smallest changes")
    browser.wait("document.querySelector('main').innerText.includes('request 10 cpu instead of 99')")
    node = data(seen, "pod?pod=default/small")["decisions"][0]["node"]
    go(browser, "#/pod/default/small", "Best nodes")
    assert f"✓ {node}" in browser.text()
    browser.wait("document.querySelector('.life').innerText.includes('started')")
    go(browser, "#/pod/default/nothing", "not known")
    assert browser.problems == []


def test_a_preempting_pod_names_its_candidates(up: Up, browser: Browser) -> None:
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    assert up.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", priority | {"value": 1000}).code == 201
    create_deployment(up, "filler", 6, "9")
    wait_until(lambda: data(up, "workloads")["workloads"][0]["states"].get("pending", 0) <= 1, why=up.log)
    # A gate keeps the pod from preempting, so that its candidates can be seen.
    create_pod(up, "urgent", "9", priorityClassName="high", schedulingGates=[{"name": "example.com/wait"}])
    go(browser, "#/pod/default/urgent", "gated by SchedulingGates")
    browser.wait("/default\\/(filler|small)/.test(document.querySelector('.halves')?.innerText ?? '')")
    assert browser.problems == []


def test_a_node_has_its_pods_and_what_still_fits(seen: Up, browser: Browser) -> None:
    node = data(seen, "pod?pod=default/small")["decisions"][0]["node"]
    go(browser, f"#/node/{node}", "default/small")
    assert "50 %" in browser.text()
    browser.wait("/Pod default\\/small 1 pod\\s+5\\s+0\\s+1/.test(document.querySelector('main').innerText)")
    assert "No driver publishes devices of this node." in browser.text()
    browser.evaluate(
        "[...document.querySelectorAll('main a')].find((each) => each.textContent.startsWith('What if it')).click()"
    )
    browser.wait(f"document.querySelector('input[placeholder^=node-1]')?.value === {json.dumps(node)}")
    press_button(browser, "Plan")
    browser.wait("document.querySelector('main').innerText.includes('no controller creates them again: default/small')")
    assert browser.evaluate("document.querySelector('pre').textContent") == f"mooring plan --remove-node {node}"
    press_button(browser, "Example")
    fill(browser, "Replicas", "5")
    press_button(browser, "Plan")
    browser.wait("document.querySelector('.result')?.innerText.includes('5 placed, 0 pending')")
    command = browser.evaluate("document.querySelector('pre').textContent")
    assert command.startswith(f"mooring plan - --remove-node {node} <<'MANIFEST'\n")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "KUBECONFIG": str(seen.kubeconfig)}
    said = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True)
    assert "5 pods: 5 placed, 0 pending." in said.stdout, said.stderr
    assert browser.problems == []


def test_workloads_have_the_states_of_their_pods(up: Up, browser: Browser) -> None:
    create_deployment(up, "web", 3, "9")
    create_deployment(up, "huge", 2, "90")
    browser.press("w")
    browser.wait("document.querySelector('main').innerText.includes('3 started')")
    browser.wait(
        "/default\\/huge\\s+Deployment\\s+2 of 2\\s[^]*2 pending/.test(document.querySelector('main').innerText)"
    )
    press_button(browser, "Job 0")
    browser.wait("document.querySelector('main').innerText.includes('No workload matches.')")
    assert browser.problems == []


def test_what_colours_say_is_in_patterns_and_words_too(seen: Up, browser: Browser) -> None:
    legend = browser.evaluate("document.querySelector('.legend').innerText")
    for words in ("0 %", "100 %", "! above allocatable", "× cordoned", "/ tainted"):
        assert words in legend
    row = "{ names: ['n'], flags: [3], columns: { cpu: [120], memory: [5], pods: [0] } }"
    text = browser.evaluate(f"import('/console/map.js').then((map) => map.describe({row}, 0))")
    assert text.startswith("n: cpu 120 %, memory 5 %")
    assert text.endswith(", above allocatable, cordoned, tainted")
    pattern = (
        "((place) => { const key = document.createElement('i'); key.className = `key s${place}`;"
        " document.body.append(key); const found = getComputedStyle(key);"
        " const text = `${found.backgroundImage} ${found.backgroundSize}`; key.remove(); return text; })"
    )
    without_colours = "(text) => text.replaceAll(/rgba?[(][^)]*[)]/g, '')"
    patterns = browser.evaluate(f"[...Array(8).keys()].map({pattern}).map({without_colours})")
    assert len(set(patterns)) == 8
    for address, text in (("#/pod/default/small", "Best nodes"), ("#/workloads", "no controller")):
        go(browser, address, text)
        keys = "[...document.querySelectorAll('.key')].map((key) => key.parentElement.textContent.trim())"
        assert browser.evaluate(f"{keys}.length > 0 && {keys}.every(Boolean)"), address
        parts = "[...document.querySelectorAll('.stack span')].map((part) => part.title)"
        assert browser.evaluate(f"{parts}.length > 0 && {parts}.every(Boolean)"), address
    assert browser.problems == []


def test_what_if_plans_a_manifest_and_a_changed_pod(seen: Up, browser: Browser) -> None:
    browser.press("i")
    browser.wait("document.querySelector('textarea')")
    press_button(browser, "Example")
    browser.wait("document.querySelector('textarea').value.includes('kind: Deployment')")
    press_button(browser, "Plan")
    browser.wait("document.querySelector('.result')?.innerText.includes('3 placed, 0 pending')")
    command = browser.evaluate("document.querySelector('pre').textContent")
    assert command.startswith("mooring plan - <<'MANIFEST'\napiVersion: apps/v1\n")
    assert command.endswith("\nMANIFEST")

    go(browser, "#/whatif/pod/default/large", "What if")
    browser.wait("document.querySelector('textarea').value.includes('name: large')")
    fill(browser, "Request cpu", "7")
    fill(browser, "Replicas", "9")
    press_button(browser, "Plan")
    browser.wait("document.querySelector('.result')?.innerText.includes('5 placed, 4 pending')")
    assert 'cpu: "7"' in browser.evaluate("document.querySelector('pre').textContent")
    fill(browser, "Request cpu", "<img src=x>")
    press_button(browser, "Plan")
    browser.wait("document.querySelector('.whatif .problem')?.innerText.includes('<img src=x>')")
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert [problem for problem in browser.problems if "422" not in problem] == []


@pytest.mark.parametrize("width", [1280, 400])
def test_every_page_fits_its_width(seen: Up, browser: Browser, width: int) -> None:
    browser.resize(width, 900)
    for address, text in (
        ("#/queue", "default/large"),
        ("#/pod/default/large", "Insufficient cpu"),
        ("#/pod/default/small", "Best nodes"),
        ("#/node/node-0", "ephemeral-storage"),
        ("#/workloads", "no controller"),
        ("#/whatif", "Manifest"),
        ("#/", "Latest rejections"),
    ):
        go(browser, address, text)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width, address


def test_long_texts_stay_within_the_page(up: Up, browser: Browser) -> None:
    merge = {"Content-Type": "application/merge-patch+json"}
    for number in range(2):
        labels = {f"example.com/{'pool-' * 10}x": f"{'v' * 50}{number}"}
        change = {"metadata": {"labels": labels}}
        assert up.ask("PATCH", f"/api/v1/nodes/node-{number}", change, headers=merge).code == 200
    name = "long-" * 12 + "name"
    create_pod(up, name, "99", nodeSelector={f"example.com/{'k' * 60}": "v" * 60})
    wait_until(lambda: any(rejection["pod"] == f"default/{name}" for rejection in data(up, "overview")["rejections"]))
    for width in (1280, 400):
        browser.resize(width, 900)
        for address, text in (
            ("#/", name),
            ("#/queue", name),
            (f"#/pod/default/{name}", "Nearest nodes"),
            ("#/time", name),
        ):
            go(browser, address, text)
            assert browser.evaluate("document.documentElement.scrollWidth") <= width, (address, width)
    assert browser.problems == []


def test_an_empty_cluster_says_so_on_every_page(tmp_path: Path, browser: Browser) -> None:
    with running(tmp_path, "--ephemeral", "--without", "nodes") as up:
        wait_until(lambda: data(up, "overview"), why=up.log)
        browser.problems.clear()
        browser.open(up.ask("GET", "/console/link").body.decode().strip())
        for text in ("No pod was tried yet.", "The cluster has no nodes."):
            browser.wait(f"document.body?.innerText.includes({json.dumps(text)})")
        for address, text in (
            ("#/queue", "No pod waits."),
            ("#/workloads", "There are no workloads."),
            ("#/time", "The cluster had no nodes."),
            ("#/learn", "No pod is ready to be scheduled"),
            ("#/pod/default/nothing", "not known"),
            ("#/node/nothing", "Node nothing"),
        ):
            go(browser, address, text)
        browser.wait("document.querySelector('.problem')?.innerText === 'There is no node nothing.'")
        browser.open("about:blank")


def test_hostile_texts_are_shown_and_not_run(up: Up, browser: Browser) -> None:
    taint = {"spec": {"taints": [{"key": "example.com/x", "value": "x", "effect": "NoSchedule"}]}}
    merge = {"Content-Type": "application/merge-patch+json"}
    assert up.ask("PATCH", "/api/v1/nodes/node-0", taint, headers=merge).code == 200
    quoted = HOSTILE.replace("%", "%25").replace("/", "%2F").replace(" ", "%20")
    go(browser, f"#/pod/default/{quoted}", HOSTILE)
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert browser.evaluate("document.title") == "Mooring console"
    go(browser, "#/node/node-0", "example.com/x=x:NoSchedule")
    assert browser.problems == []


def test_without_a_login_the_browser_shows_how_to_get_one(tmp_path: Path, browser: Browser) -> None:
    with running(tmp_path, "--ephemeral", "--without", "controllers,nodes") as up:
        for path in ("/console/", "/console/login?token=wrong"):
            browser.open(up.url + path)
            browser.wait("document.body?.innerText.includes('Not logged in')")
            assert "kubectl get --raw /console/link" in browser.text()
