"""The last words of a container: what its status says of why it ended.

Comes in   the file that it was told to write them to; its log
Goes out   a message of at most 4,096 bytes

With the policy FallbackToLogsOnError a container that failed without a word is quoted from the end of its log: 2,048
bytes or 80 lines at most. All as a kubelet does it.
"""

from __future__ import annotations

from pathlib import Path

MESSAGE_BYTES_MAX = 4096
LOG_BYTES_MAX = 2048
LOG_LINES_MAX = 80
_TAIL_BYTES = 64 * 1024
FALLBACK_POLICY = "FallbackToLogsOnError"


def termination_message(file: Path, log: Path, policy: str, code: int) -> str:
    """What the status tells of the end."""
    message = _head(file)
    if message or code == 0 or policy != FALLBACK_POLICY:
        return message.decode(errors="replace")
    return _log_tail(log).decode(errors="replace")


def _head(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(MESSAGE_BYTES_MAX)
    except OSError:
        return b""


def _log_tail(log: Path) -> bytes:
    try:
        with log.open("rb") as opened:
            size = opened.seek(0, 2)
            opened.seek(max(0, size - _TAIL_BYTES))
            lines = opened.read().split(b"\n")
    except OSError:
        return b""
    # The first may be the rest of a line, and the last is empty.
    whole = lines[1 if size > _TAIL_BYTES else 0 : -1][-LOG_LINES_MAX:]
    texts = [line.split(b" ", 3) for line in whole]
    said = b"".join(parts[3] + (b"\n" if parts[2] == b"F" else b"") for parts in texts if len(parts) == 4)
    return said[-LOG_BYTES_MAX:]
