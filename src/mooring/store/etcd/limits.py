"""The limits of a store on etcd, each with its name and what happens when it is reached."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.store.memory import HISTORY_CHANGES_MAX, HISTORY_REPLACED_BYTES_MAX
from mooring.store.memory_watch import WATCH_BUFFER_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdLimits:
    """How much is kept here, how long is waited, and how often is compacted. How large a value may be etcd says."""

    # The history that is kept here: for what is older etcd is asked.
    changes_max: int = HISTORY_CHANGES_MAX
    replaced_bytes_max: int = HISTORY_REPLACED_BYTES_MAX

    # Watches: one that more changes wait for is told `RevisionGone`, and so is one that would have to be told more than
    # `missed_changes_max` at its start.
    buffer_max: int = WATCH_BUFFER_MAX
    missed_changes_max: int = 100_000

    # Writes: one more than may wait is refused (`StoreBusy`).
    waiting_writes_max: int = 10_000

    # Patience: a call that takes longer counts as lost, and when no endpoint has answered for as long as
    # `unreachable_s_max`, whoever asked is told so. Between two rounds of the endpoints we wait, doubling.
    request_s_max: float = 5.0
    unreachable_s_max: float = 10.0
    retry_s: float = 0.05
    retry_s_max: float = 2.0

    # Loading: this many records at once, so that no answer is a hundred megabytes long.
    loaded_records_max: int = 2_000

    # What is older than one interval is compacted, as kube-apiserver does; 0 leaves it to somebody else.
    compaction_interval_s: float = 300.0
