"""Log lines in the formats of Kubernetes' components, on standard error.

   I1116 04:03:36.943579    3794 reports.py:191] pod default/web-1 is bound to node-3, attempts: 1
   {"ts":1794801816943.579,"caller":"reporting/reports.py:191","msg":"pod …","v":2,"pod":"default/web-1","node":…}

1. `fields(pod=…, node=…)` as `extra` adds fields to the JSON line. In text, the message contains them.
2. Verbosity `n` also logs what is n levels below INFO (2: every scheduling attempt), 4 and more everything.
3. Times in text are UTC.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TextIO

FORMATS = ("text", "json")
ATTEMPTS = logging.INFO - 2
"""The level of lines about every scheduling attempt: klog's verbosity 2, as in kube-scheduler."""
DEBUG_VERBOSITY = 4

_FIELDS = "mooring_fields"
"""The attribute of a log record that holds the fields."""
_LETTERS = {logging.DEBUG: "I", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}


def fields(**values: object) -> dict[str, object]:
    """The argument `extra` of a log call. Empty values are left out."""
    return {_FIELDS: {name: value for name, value in values.items() if value not in ("", None)}}


class KlogFormatter(logging.Formatter):
    """Text with klog's header."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        head = f"{_LETTERS.get(record.levelno, 'I')}{moment:%m%d %H:%M:%S.%f} {record.process or 0:7d}"
        line = f"{head} {record.filename}:{record.lineno}] {record.getMessage()}"
        return f"{line}\n{_trace(record)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{PurePath(record.pathname).parent.name}/{record.filename}:{record.lineno}",
            "msg": record.getMessage(),
        }
        if record.levelno < logging.ERROR:
            entry["v"] = min(max(logging.INFO - record.levelno, 0), DEBUG_VERBOSITY)
        if record.levelno == logging.WARNING:
            entry["level"] = "warning"
        if record.exc_info:
            entry["err"] = str(record.exc_info[1])
            entry["stacktrace"] = _trace(record)
        entry |= getattr(record, _FIELDS, {})
        return json.dumps(entry, ensure_ascii=False, default=str)


def start_logs(form: str, level: int, stream: TextIO | None = None) -> None:
    """Replace all log handlers. `level` is that of the components; libraries log from INFO on."""
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else KlogFormatter())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    set_level(level)


def set_level(level: int) -> None:
    logging.getLogger().setLevel(max(level, logging.INFO))
    logging.getLogger("mooring").setLevel(level)


def level_of(verbosity: int) -> int:
    """The level of klog's `-v`."""
    return logging.DEBUG if verbosity >= DEBUG_VERBOSITY else logging.INFO - max(verbosity, 0)


def _trace(record: logging.LogRecord) -> str:
    assert record.exc_info
    return "".join(traceback.format_exception(*record.exc_info)).rstrip()
