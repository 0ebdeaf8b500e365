"""What every client must do. A client's own test file inherits `ClientContract` and says how a scenario is played.

The scenarios send objects that a real API server accepts, and look only at what they are about: defaults that a server
adds are none of their business. They need the namespaces `default` and `kube-system`.
"""

from __future__ import annotations

from tests.client.contract_batches import BatchContract
from tests.client.contract_changing import ChangingContract, DeletingContract
from tests.client.contract_reading import ReadingContract, WatchingContract


class ClientContract(ReadingContract, ChangingContract, DeletingContract, BatchContract, WatchingContract):
    """Inherit it and override `play`."""
