"""Tests of validation.names."""

from __future__ import annotations

import pytest

from mooring.apiserver.validation.names import (
    validate_descending_path,
    validate_file_mode,
    validate_no_backsteps,
    validate_unreserved_path,
)


@pytest.mark.parametrize(
    ("path", "details"),
    [
        pytest.param("a/b", [], id="below"),
        pytest.param("a..b", [], id="dots inside"),
        pytest.param("/a", ["must be a relative path"], id="absolute"),
        pytest.param("a/../b", ["must not contain '..'"], id="climbing"),
        pytest.param("..a", ["must not start with '..'"], id="reserved"),
        pytest.param("../a", ["must not contain '..'"], id="climbing at once"),
    ],
)
def test_unreserved_paths(path: str, details: list[str]) -> None:
    assert [error.detail for error in validate_unreserved_path(path, "p")] == details


def test_others_allow_more() -> None:
    assert validate_no_backsteps("/a/b", "p") == []
    assert validate_descending_path("..a", "p") == []


@pytest.mark.parametrize(("mode", "is_right"), [(None, True), (0, True), (0o777, True), (0o1000, False), (-1, False)])
def test_modes(mode: int | None, is_right: bool) -> None:
    assert (validate_file_mode(mode, "p") == []) is is_right
