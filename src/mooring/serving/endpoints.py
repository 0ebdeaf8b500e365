"""Health endpoints (/healthz, /livez, /readyz) and pages about the process (/flagz, /statusz, /configz).

1. A failing health page names the failing check, not the cause: the page is public. The cause is in the log, and on
   the page of the check, which is not public.
2. `?verbose` lists every check, `?exclude=NAME` skips one, `/readyz/NAME` runs one.
3. Texts are those of Kubernetes.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

from mooring.serving.pages import PageRequest, PageResponse, as_json, text

Check = Callable[[], str]
"""Returns what is wrong, or an empty text."""

logger = logging.getLogger(__name__)
_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)


def ping() -> str:
    return ""


def health_pages(pages: Mapping[str, Mapping[str, Check]]) -> dict[str, Callable[[PageRequest], PageResponse]]:
    """Pages by path, from the checks of each page (`readyz`). A page without checks has `ping`."""
    served: dict[str, Callable[[PageRequest], PageResponse]] = {}
    for name, configured in pages.items():
        checks = dict(configured) or {"ping": ping}
        served[f"/{name}"] = partial(health_answer, name, checks)
        for check_name, check in checks.items():
            served[f"/{name}/{check_name}"] = partial(_check_answer, check)
    return served


def _check_answer(check: Check, request: PageRequest) -> PageResponse:
    problem = check()
    return text(f"internal server error: {problem}\n", 500) if problem else text("ok")


def health_answer(name: str, checks: Mapping[str, Check], request: PageRequest) -> PageResponse:
    excluded = set(request.query.get("exclude", ()))
    unknown = sorted(excluded - set(checks))
    lines, failures = [], []
    for check_name, check in checks.items():
        if check_name in excluded:
            lines.append(f"[+]{check_name} excluded: ok\n")
            continue
        problem = check()
        if problem:
            failures.append(f"{check_name}: {problem}")
        lines.append(f"[-]{check_name} failed: reason withheld\n" if problem else f"[+]{check_name} ok\n")
    if unknown:
        names = ",".join(json.dumps(check_name) for check_name in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
    if failures:
        logger.info("%s check failed: %s", name, "; ".join(failures))
        return text(f"{''.join(lines)}{name} check failed\n", 500)
    if not request.has("verbose"):
        return text("ok")
    return text(f"{''.join(lines)}{name} check passed\n")


def flags_page(component: str, flags: Mapping[str, str]) -> PageResponse:
    """All flags with their values, sorted by name."""
    lines = [f"{name}={value}" for name, value in sorted(flags.items())]
    return text(f"\n{component} flagz\n{_WARNING}\n" + "\n".join(lines) + "\n")


def status_page(
    component: str, *, started_wall_s: float, up_s: float, version: str, emulates: str, paths: Sequence[str]
) -> PageResponse:
    """Start time, uptime and versions."""
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


def configuration_page(configuration: Mapping[str, object]) -> PageResponse:
    return as_json({"componentconfig": configuration})
