"""Names of container images.

Comes in   an image as a pod writes it
Goes out   the name under which nodes report it
"""

from __future__ import annotations


def normalized_image_name(name: str) -> str:
    """The name with a tag: an image without one means `latest`. A colon before the last slash belongs to a port."""
    has_tag = name.rfind(":") > name.rfind("/")
    return name if has_tag else f"{name}:latest"
