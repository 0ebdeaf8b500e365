"""Health: /healthz, /livez and /readyz, in whole and check by check.

Comes in   named checks
Goes out   `ok`; or which check fails, in kube-apiserver's form

 1. `?verbose` lists every check; `?exclude=NAME` leaves one out; `/readyz/NAME` asks for one only.
 2. Why a check fails goes to the log, not to whoever asks.
"""

from __future__ import annotations

from mooring.apiserver.health import Health
from mooring.apiserver.http.query import Query
from mooring.apiserver.http.reply import Reply, page_not_found, text_reply


def health_reply(health: Health, path: str, name: str, query: Query) -> Reply:
    """The reply for `/livez`, `/livez/ping` and so on."""
    checks = health.checks(path)
    if name:
        if name not in checks:
            return page_not_found()
        return text_reply(200, "ok") if checks[name]() else text_reply(500, "internal server error: check failed\n")
    excluded = [each for each in query.texts("exclude") if each in checks]
    lines: list[str] = []
    failed: list[str] = []
    for each, check in checks.items():
        if each in excluded:
            lines.append(f"[+]{each} excluded: ok")
        elif check():
            lines.append(f"[+]{each} ok")
        else:
            failed.append(each)
            lines.append(f"[-]{each} failed: reason withheld")
    if failed:
        return text_reply(500, "\n".join([*lines, f"{path} check failed", ""]))
    if not query.has("verbose"):
        return text_reply(200, "ok")
    return text_reply(200, "\n".join([*lines, f"{path} check passed", ""]))
