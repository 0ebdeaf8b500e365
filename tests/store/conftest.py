"""Fixtures with a real etcd, one for each test process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.store.etcd.builders import PROGRAM, Etcd, empty, play


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without an etcd program its tests are deselected; `tests/conftest.py` reports it."""
    if PROGRAM is not None:
        return
    without = [item for item in items if "etcd_program" in getattr(item, "fixturenames", ())]
    if without:
        config.hook.pytest_deselected(items=without)
        items[:] = [item for item in items if item not in without]


@pytest.fixture(scope="session")
def etcd_program() -> str:
    assert PROGRAM is not None, "etcd is not installed, so this test should have been deselected"
    return PROGRAM


@pytest.fixture(scope="session")
def etcd_shared(etcd_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    etcd = Etcd(etcd_program, tmp_path_factory.mktemp("etcd"))
    yield etcd
    etcd.kill()


@pytest.fixture
def etcd(etcd_shared: Etcd) -> Etcd:
    """The shared etcd without records; its revisions continue."""
    play(etcd_shared.url, empty)
    return etcd_shared


@pytest.fixture
def etcd_alone(etcd_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    """An etcd that a test may kill, pause or restore."""
    etcd = Etcd(etcd_program, tmp_path_factory.mktemp("etcd"))
    yield etcd
    etcd.kill()
