"""The limits of a store on disk, and what happens when one is reached."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.store.memory import HISTORY_CHANGES_MAX, HISTORY_REPLACED_BYTES_MAX, WATCH_BUFFER_MAX

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteLimits:
    """Limits of the history, of pending writes, and of single steps."""

    # History: older changes are compacted.
    changes_max: int = HISTORY_CHANGES_MAX
    replaced_bytes_max: int = HISTORY_REPLACED_BYTES_MAX
    history_s_max: float = 600.0
    """kube-apiserver compacts changes that are five to ten minutes old."""

    # Watches: one with more pending changes gets `RevisionGone`.
    buffer_max: int = WATCH_BUFFER_MAX

    # Writes: a longer value is refused (`ValueTooLarge`), and so is a write above the limit (`StoreBusy`). Writes that
    # do not fit into a commit go into the next one.
    value_bytes_max: int = 8 * MIB
    waiting_writes_max: int = 50_000
    commit_writes_max: int = 1_000
    commit_bytes_max: int = 8 * MIB

    # Commits on the event loop. Larger ones, and all for some time after the average was slower, go to the thread.
    here_writes_max: int = 256
    here_bytes_max: int = MIB
    here_s: float = 0.002
    here_s_per_write: float = 0.000_04
    away_s: float = 1.0
    away_s_max: float = 60.0

    # The file: above its limit only deletions are accepted (`DiskFull` for other writes).
    file_bytes_max: int = 8 * 1024 * MIB

    # The reserve: disk space that is given up when the disk is full, so that the store can be opened, and deletions can
    # be written. Without it only deletions are accepted (`DiskFull` for other writes).
    reserve_bytes: int = 2 * MIB
    free_bytes_low: int = 64 * MIB
    """With less free disk space, the log is written into the file after half of the reserve, so that the reserve is
    always enough for that."""

    # Maintenance. A longer log means fewer checkpoints and more to read after a crash. Free space up to the limit is
    # reused, the rest goes back to the file system.
    log_bytes_max: int = 16 * MIB
    obsolete_rows_max: int = 2_000
    tended_rows_max: int = 5_000
    free_bytes_kept: int = 16 * MIB
    freed_bytes_max: int = 32 * MIB
