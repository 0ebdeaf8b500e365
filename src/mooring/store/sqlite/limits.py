"""The limits of a store on disk, each with its name and what happens when it is reached."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.store.memory import HISTORY_CHANGES_MAX, HISTORY_REPLACED_BYTES_MAX
from mooring.store.memory_watch import WATCH_BUFFER_MAX

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteLimits:
    """How much is kept, how much waits, and how much is done at once."""

    # History: what is beyond is compacted.
    changes_max: int = HISTORY_CHANGES_MAX
    replaced_bytes_max: int = HISTORY_REPLACED_BYTES_MAX
    history_s_max: float = 600.0
    """kube-apiserver compacts every five minutes what is older than five: a pager has as long here."""

    # Watches: one that more changes wait for is told `RevisionGone`.
    buffer_max: int = WATCH_BUFFER_MAX

    # Writes: a longer value is refused (`ValueTooLarge`), and so is one write more than may wait (`StoreBusy`); what
    # does not fit into a commit goes into the next.
    value_bytes_max: int = 8 * MIB
    waiting_writes_max: int = 50_000
    commit_writes_max: int = 1_000
    commit_bytes_max: int = 8 * MIB

    # On the loop: a larger commit, or any for a while after the disk took longer on average than this, is left to the
    # writer's thread.
    here_writes_max: int = 256
    here_bytes_max: int = MIB
    here_s: float = 0.002
    here_s_per_write: float = 0.000_04
    away_s: float = 1.0
    away_s_max: float = 60.0

    # The file: beyond its limit only deletions are taken (`DiskFull` for the rest).
    file_bytes_max: int = 8 * 1024 * MIB

    # Tending. A longer log is fewer checkpoints and more to read after a crash; free room that is kept is reused
    # without moving anything, and what is beyond goes back to the file system.
    log_bytes_max: int = 16 * MIB
    obsolete_rows_max: int = 2_000
    tended_rows_max: int = 5_000
    free_bytes_kept: int = 16 * MIB
    freed_bytes_max: int = 32 * MIB
