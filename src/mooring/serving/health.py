"""Health: named checks, and the pages that show them.

Comes in   checks: functions that say what is wrong, or nothing
Goes out   the answers of /healthz, /livez and /readyz, and of each check below them

 1. A failing page says which check fails, never why: it is public. Why stands in the log, and on the check's own page,
    which is not.
 2. The words are those of Kubernetes' own health pages.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping

from mooring.serving.pages import Answer, Question, text

Check = Callable[[], str]
"""What is wrong; empty if nothing is."""

logger = logging.getLogger(__name__)


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
