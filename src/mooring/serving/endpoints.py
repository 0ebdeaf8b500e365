"""Pages about the process itself: its flags, how long it runs, its configuration.

Comes in   flags as text, a version, times
Goes out   the answers of /flagz, /statusz and /configz
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from mooring.serving.pages import Answer, as_json, text

_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)


def flags_page(component: str, flags: Mapping[str, str]) -> Answer:
    """Every flag with its value, in the order of the names."""
    lines = [f"{name}={value}" for name, value in sorted(flags.items())]
    return text(f"\n{component} flagz\n{_WARNING}\n" + "\n".join(lines) + "\n")


def status_page(
    component: str, *, started_wall_s: float, up_s: float, version: str, emulates: str, paths: Sequence[str]
) -> Answer:
    """When it started, for how long it runs, and what it is."""
    started = datetime.fromtimestamp(started_wall_s, UTC).strftime("%a %b %e %H:%M:%S UTC %Y")
    minutes, seconds = divmod(int(up_s), 60)
    hours, minutes = divmod(minutes, 60)
    python = ".".join(str(part) for part in sys.version_info[:3])
    lines = [
        f"Started= {started}",
        f"Up= {hours} hr {minutes:02d} min {seconds:02d} sec",
        f"Python version= {python}",
        f"Binary version= {version}",
        f"Emulation version= {emulates}",
        f"Paths= {' '.join(sorted(paths))}",
    ]
    return text(f"\n{component} statusz\n{_WARNING}\n\n" + "\n".join(lines) + "\n")


def configuration_page(configuration: Mapping[str, object]) -> Answer:
    return as_json({"componentconfig": configuration})
