"""Logs of components as Kubernetes writes them: klog's text, or JSON.

Comes in   log records, a verbosity
Goes out   lines on standard error

    I1116 04:03:36.943579    3794 scheduler.py:191] scheduling on 3 nodes, 0 pods are pending
    {"ts":1794801816943.579,"caller":"scheduler/scheduler.py:191","msg":"scheduling on …","v":0}

 1. Verbosity 0 shows what matters, `n` also what is logged n below INFO (2: every attempt of the scheduler), 4 and more
    everything.
 2. The time in text is UTC: a cluster has no other.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import TextIO

DEBUG_VERBOSITY = 4
FORMATS = ("text", "json")

_LETTERS = {logging.DEBUG: "I", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}


class KlogFormatter(logging.Formatter):
    """A line of text, as klog heads it."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        head = f"{_LETTERS.get(record.levelno, 'I')}{moment:%m%d %H:%M:%S.%f} {record.process or 0:7d}"
        line = f"{head} {record.filename}:{record.lineno}] {record.getMessage()}"
        return f"{line}\n{_trace(record)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, object] = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{record.module}/{record.filename}:{record.lineno}",
            "msg": record.getMessage(),
        }
        if record.levelno < logging.ERROR:
            told["v"] = min(max(logging.INFO - record.levelno, 0), DEBUG_VERBOSITY)
        if record.levelno == logging.WARNING:
            told["level"] = "warning"
        if record.exc_info:
            told["err"] = str(record.exc_info[1])
            told["stacktrace"] = _trace(record)
        return json.dumps(told, ensure_ascii=False)


def set_up_logs(form: str, verbosity: int, stream: TextIO | None = None) -> None:
    """From now on everything that is logged goes there."""
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else KlogFormatter())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    set_verbosity(verbosity)


def set_verbosity(verbosity: int) -> None:
    level = logging.DEBUG if verbosity >= DEBUG_VERBOSITY else logging.INFO - max(verbosity, 0)
    logging.getLogger().setLevel(logging.INFO)
    logging.getLogger("mooring").setLevel(level)


def _trace(record: logging.LogRecord) -> str:
    assert record.exc_info
    return "".join(traceback.format_exception(*record.exc_info)).rstrip()
