"""The files of the web console: HTML, styles and ES modules in `static/`, read once.

Input: the package's own files. Output: `Asset`s by name. `serving.console` serves them.

`static/vendor/` holds modules from npm; its `manifest.json` has their versions, licences and hashes, and
`tools/vendor_console.py` updates them. There is no build step: a browser loads the files as they are.

A page is one module with a component and a line in `app.js`, and the names of its data in `FOLLOWED` and `TAKEN` of
`data.js`. Its data are a function of `scheduler/console/data.py`, a path in `cluster/scheduler_pages.py`, and the same
path in `SCHEDULER_PATHS` of `cluster/component_pages.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

INDEX = "index.html"
STATIC = Path(__file__).parent / "static"
_CONTENT_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the console."""

    body: bytes
    content_type: str
    etag: str


@cache
def assets() -> Mapping[str, Asset]:
    """Every file by its path below `static/`, such as `vendor/preact.js`."""
    paths = (path for path in STATIC.rglob("*") if path.is_file())
    return {path.relative_to(STATIC).as_posix(): _read(path) for path in paths}


def _read(path: Path) -> Asset:
    body = path.read_bytes()
    return Asset(body, _CONTENT_TYPES[path.suffix], f'"{sha256(body).hexdigest()[:32]}"')
