"""A browser for the tests that need one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.browser import PROGRAM, Browser


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a browser its tests are not run, which `tests/conftest.py` reports."""
    if PROGRAM is not None:
        return
    without = [item for item in items if "browser" in getattr(item, "fixturenames", ())]
    if without:
        config.hook.pytest_deselected(items=without)
        items[:] = [item for item in items if item not in without]


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    assert PROGRAM is not None, "there is no browser here, and this test should have been deselected"
    with Browser(PROGRAM, tmp_path) as browser:
        yield browser
