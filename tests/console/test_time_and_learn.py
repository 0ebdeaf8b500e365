"""Time and Learn in a real browser, live data, and the accessibility of every page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from mooring.kit.clock import SystemClock
from tests.cluster.running import Up, running
from tests.console.browser import Browser
from tests.console.clusters import create_pod, data, login_link
from tests.console.test_browser import go
from tests.waiting import wait_until

AXE = Path(__file__).with_name("vendor") / "axe.min.js"
OPTIONS = ("--ephemeral", "--nodes", "4", "--zones", "a,b", "--cpu", "10")
PAGES = {
    "#/": "Latest rejections",
    "#/queue": "default/large",
    "#/pod/default/large": "Insufficient cpu",
    "#/pod/default/small": "Best nodes",
    "#/node/node-0": "ephemeral-storage",
    "#/workloads": "Workloads",
    "#/whatif": "What if",
    "#/time": "Pods that waited",
    "#/learn": "Choose a pod",
}


@pytest.fixture
def up(tmp_path: Path, browser: Browser) -> Iterator[Up]:
    """A cluster with a placed and a pending pod, and the browser at its overview."""
    with running(tmp_path, *OPTIONS) as up:
        link = login_link(up)
        create_pod(up, "small", "5")
        create_pod(up, "large", "99")
        wait_until(lambda: (data(up, "overview") or {}).get("rejections"), why=up.log)
        browser.resize(1280, 900)
        browser.open(link)
        browser.wait("document.querySelector('.map canvas')?.style.height")
        yield up


def press_button(browser: Browser, text: str) -> None:
    find = f"[...document.querySelectorAll('main button')].find((each) => each.textContent === {json.dumps(text)})"
    browser.wait(f"{find} && !{find}.disabled")
    browser.evaluate(f"{find}.click()")


def shown(browser: Browser, text: str) -> None:
    browser.wait(f"document.querySelector('main').innerText.includes({json.dumps(text)})")


def test_every_page_keeps_the_rules_of_accessibility_in_both_themes(up: Up, browser: Browser) -> None:
    browser.evaluate(AXE.read_text(encoding="utf-8"))
    for theme in ("light", "dark"):
        browser.set_theme(theme)
        for address, text in PAGES.items():
            go(browser, address, text)
            found = browser.evaluate(
                "axe.run(document, {resultTypes: ['violations']}).then((found) => JSON.stringify("
                "found.violations.map((each) => [each.id, each.nodes.map((node) => node.html.slice(0, 200))])))"
            )
            assert json.loads(found) == [], (theme, address)
    assert browser.problems == []


def test_one_stream_follows_the_page_and_comes_back(up: Up, browser: Browser) -> None:
    requests = "performance.getEntriesByType('resource').filter((each) => each.name.includes('/console/data/'))"
    own = "/[/]console[/]data[/](live|history|nodes)[?]/"  # bytes, and what was sampled before, are not in the stream
    assert browser.evaluate(f"{requests}.every((each) => {own}.test(each.name))")
    browser.press("q")
    shown(browser, "default/large")
    create_pod(up, "huge", "98")
    shown(browser, "default/huge")
    before = wait_until(lambda: up.metric("apiserver_request_total"))
    create_pod(up, "vast", "97")
    shown(browser, "default/vast")
    assert up.metric("apiserver_request_total") - before < 20, "the page does not ask again and again"
    browser.call("Network.enable")
    browser.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
    browser.evaluate("location.hash = '#/'")
    browser.wait("document.querySelector('.problem')?.innerText.startsWith('The server does not answer')")
    browser.call(
        "Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1
    )
    browser.wait("!document.querySelector('.problem')")


def test_time_shows_the_map_and_the_queue_as_they_were(up: Up, browser: Browser) -> None:
    def samples() -> list[Any]:
        return list((data(up, "past") or {}).get("samples", ()))

    rejected_s = ceil(wait_until(lambda: [sample[0] for sample in samples() if sample[2] == 1])[-1])
    wait_until(lambda: SystemClock().wall_s() > rejected_s + 1)  # the slider has whole seconds
    for number in range(2):
        create_pod(up, f"later-{number}", "5")
    wait_until(lambda: samples()[-1][3] == 3)
    assert up.ask("DELETE", "/api/v1/namespaces/default/pods/large?gracePeriodSeconds=0").code == 200
    wait_until(lambda: samples()[-1][1] == 0)
    go(browser, "#/time", "3 pods bound")
    place = f"const slider = document.querySelector('.slider'); slider.value = {rejected_s}"
    browser.evaluate(f"{{ {place}; slider.dispatchEvent(new Event('input', {{ bubbles: true }})); }}")
    shown(browser, "1 pod bound, 1 unschedulable")
    shown(browser, "Pods that waited: 1")
    assert "default/large" in browser.text()
    assert "later-1" not in browser.text()
    press_button(browser, "Now")
    shown(browser, "later-1")
    end = browser.evaluate("Number(document.querySelector('.slider').max)")
    browser.wait(f"Number(document.querySelector('.slider').max) > {end}")  # although nothing has changed
    assert browser.problems == []


def test_learn_steps_through_a_cycle_and_a_lost_race(up: Up, browser: Browser) -> None:
    go(browser, "#/learn", "Choose a pod")
    press_button(browser, "Pause")
    shown(browser, "Paused since")
    assert up.ask("GET", "/debug/queue").document()["paused"]["until"]
    assert "scheduling is paused" in up.log()
    create_pod(up, "first", "2")
    create_pod(up, "second", "2")
    press_button(browser, "default/first")
    shown(browser, "It is the next one.")
    press_button(browser, "Step")
    shown(browser, "The binding is held. Step sends it.")
    press_button(browser, "Step")
    shown(browser, "The API server has the pod on")
    press_button(browser, "default/second")
    press_button(browser, "Step")
    shown(browser, "The binding is held. Step sends it.")
    assert up.ask("DELETE", "/api/v1/namespaces/default/pods/second?gracePeriodSeconds=0").code == 200
    press_button(browser, "Step")
    shown(browser, "Rolled back")
    shown(browser, "The binding failed, and the assumption was undone")
    press_button(browser, "Resume")
    shown(browser, "The scheduler runs.")
    assert "paused" not in up.ask("GET", "/debug/queue").document()
    assert browser.problems == []


@pytest.mark.parametrize("width", [1280, 400])
def test_the_pages_fit_their_width(up: Up, browser: Browser, width: int) -> None:
    browser.resize(width, 900)
    for address in ("#/time", "#/learn"):
        go(browser, address, PAGES[address])
        assert browser.evaluate("document.documentElement.scrollWidth") <= width, address


def test_a_link_logs_in_only_once(up: Up, browser: Browser) -> None:
    link = up.ask("GET", "/console/link").body.decode().strip()
    for text in ("Overview", "Not logged in"):
        browser.open("about:blank")
        browser.open(link)
        browser.wait(f"document.body?.innerText.includes({json.dumps(text)})")
