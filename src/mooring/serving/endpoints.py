"""Pages about the process itself: its flags, how long it runs, its configuration.

Comes in   flags as text, a version, times
Goes out   the answers of /flagz, /statusz and /configz
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from mooring.serving.pages import Answer, Question, as_json, text

Check = Callable[[], str]
"""What is wrong; empty if nothing is."""

logger = logging.getLogger(__name__)
_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)


def ping() -> str:
    return ""


def health_pages(pages: Mapping[str, Mapping[str, Check]]) -> dict[str, Callable[[Question], Answer]]:
    """From the checks of each page (`readyz`) to what is served where. A page without any has `ping`."""
    served: dict[str, Callable[[Question], Answer]] = {}
    for name, given in pages.items():
        checks = dict(given) or {"ping": ping}
        served[f"/{name}"] = _page(name, checks)
        for check, look in checks.items():
            served[f"/{name}/{check}"] = _check_page(look)
    return served


def _page(name: str, checks: Mapping[str, Check]) -> Callable[[Question], Answer]:
    return lambda question: health_answer(name, checks, question)


def _check_page(look: Check) -> Callable[[Question], Answer]:
    def answer(question: Question) -> Answer:
        wrong = look()
        return text(f"internal server error: {wrong}\n", 500) if wrong else text("ok")

    return answer


def health_answer(name: str, checks: Mapping[str, Check], question: Question) -> Answer:
    excluded = {each for value in question.query.get("exclude", ()) for each in value.split(",") if each}
    unknown = sorted(excluded - set(checks))
    lines, failures = [], []
    for check, look in checks.items():
        if check in excluded:
            lines.append(f"[+]{check} excluded: ok\n")
            continue
        wrong = look()
        if wrong:
            failures.append(f"{check}: {wrong}")
        lines.append(f"[-]{check} failed: reason withheld\n" if wrong else f"[+]{check} ok\n")
    if unknown:
        names = ",".join(json.dumps(each) for each in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
    if failures:
        logger.info("%s check failed: %s", name, "; ".join(failures))
        return text(f"{''.join(lines)}{name} check failed\n", 500)
    if not question.has("verbose"):
        return text("ok")
    return text(f"{''.join(lines)}{name} check passed\n")


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
