"""The console in a real browser: each page, live updates, keyboard, hostile texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.running import Up, running
from tests.console.browser import Browser
from tests.console.clusters import create_pod, data, login_link
from tests.waiting import wait_until

OPTIONS = ("--ephemeral", "--nodes", "6", "--zones", "a,b", "--cpu", "10")
HOSTILE = "<img src=x onerror=document.title='run'>"


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


def go(browser: Browser, address: str, text: str) -> None:
    """Open a page, and wait until it shows the text."""
    browser.evaluate(f"location.hash = {json.dumps(address)}")
    browser.wait(f"document.querySelector('main').innerText.includes({json.dumps(text)})")


def test_the_overview_shows_the_cluster_and_follows_it(up: Up, browser: Browser) -> None:
    browser.wait("document.body.innerText.includes('Insufficient cpu')")
    assert browser.evaluate("document.querySelector('.map canvas').getAttribute('aria-label')").startswith(
        "Map of 6 nodes."
    )
    before = browser.evaluate("document.querySelectorAll('.tile b')[1].textContent")
    assert before == "1"
    create_pod(up, "second", "5")
    browser.wait("document.querySelectorAll('.tile b')[1].textContent === '2'")
    assert browser.problems == []


def test_the_map_opens_a_node_by_click_and_by_keyboard(up: Up, browser: Browser) -> None:
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


def test_the_queue_is_filtered_by_keyboard(up: Up, browser: Browser) -> None:
    create_pod(up, "huge", "98")
    browser.press("q")
    browser.wait("document.querySelectorAll('tbody tr').length === 2")
    assert "Insufficient cpu" in browser.text()
    browser.press("/")
    assert browser.evaluate("document.activeElement.type") == "search"
    for letter in "hug":
        browser.press(letter)
    browser.wait("document.querySelectorAll('tbody tr').length === 1")
    assert "default/huge" in browser.text()
    browser.press("Escape")
    browser.wait("document.querySelectorAll('tbody tr').length === 2")
    browser.press("?")
    browser.wait("document.querySelector('dialog').open")
    assert browser.problems == []


def test_a_pod_has_its_attempts_and_a_node_its_pods(up: Up, browser: Browser) -> None:
    go(browser, "#/pod/default/large", "0/6 nodes are available")
    browser.wait("document.querySelector('.rejected-by').innerText.includes('NodeResourcesFit')")
    node = data(up, "pod?pod=default/small")["decisions"][0]["node"]
    go(browser, "#/pod/default/small", "Best nodes")
    assert f"✓ {node}" in browser.text()
    go(browser, f"#/node/{node}", "default/small")
    assert "50 %" in browser.text()
    go(browser, "#/pod/default/nothing", "not known")
    assert browser.problems == []


@pytest.mark.parametrize("width", [1280, 400])
def test_every_page_fits_its_width(up: Up, browser: Browser, width: int) -> None:
    browser.resize(width, 900)
    for address, text in (
        ("#/queue", "default/large"),
        ("#/pod/default/large", "Insufficient cpu"),
        ("#/pod/default/small", "Best nodes"),
        ("#/node/node-0", "ephemeral-storage"),
        ("#/", "Latest rejections"),
    ):
        go(browser, address, text)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width, address


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
