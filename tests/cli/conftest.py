"""Commands set up their logs; a test leaves those of the test run as they were."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("mooring")
    handlers, level, our_level = list(root.handlers), root.level, ours.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    ours.setLevel(our_level)
