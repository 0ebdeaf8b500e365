"""Services and their endpoints in a table."""

from __future__ import annotations

from mooring.api import kinds
from mooring.apiserver.kinds.endpoint_slice import ENDPOINT_SLICE_TABLE
from mooring.apiserver.kinds.endpoints import ENDPOINTS_TABLE
from mooring.apiserver.kinds.service.strategy import SERVICE_TABLE

TABLES = {
    kinds.SERVICE: SERVICE_TABLE,
    kinds.ENDPOINTS: ENDPOINTS_TABLE,
    kinds.ENDPOINT_SLICE: ENDPOINT_SLICE_TABLE,
}
