"""Names of images."""

from __future__ import annotations

import pytest

from mooring.api.images import normalized_image_name


@pytest.mark.parametrize(
    ("written", "normalized"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1.25", "nginx:1.25"),
        ("registry:5000/nginx", "registry:5000/nginx:latest"),
        ("registry:5000/nginx:1.25", "registry:5000/nginx:1.25"),
        ("nginx@sha256:abc", "nginx@sha256:abc"),
        ("", ":latest"),
    ],
)
def test_an_image_without_a_tag_means_latest(written: str, normalized: str) -> None:
    assert normalized_image_name(written) == normalized
