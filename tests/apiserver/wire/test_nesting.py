"""How deep a body may be."""

from __future__ import annotations

import msgspec
import pytest

from mooring.apiserver.wire.json_syntax import BodySyntaxError
from mooring.apiserver.wire.nesting import NESTING_MAX, check_nesting


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"[" * NESTING_MAX + b"]" * NESTING_MAX, id="as deep as allowed"),
        pytest.param(b'{"a":' * NESTING_MAX + b"1" + b"}" * NESTING_MAX, id="objects as deep as allowed"),
        pytest.param(b"[" + b",".join([b"[]"] * 5_000) + b"]", id="wide, not deep"),
        pytest.param(b'["' + b"[" * 5_000 + b'"]', id="brackets in a text"),
    ],
)
def test_what_is_allowed(data: bytes) -> None:
    check_nesting(data, msgspec.json.decode(data))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"[" * 201 + b"]" * 201, id="one level too many"),
        pytest.param(b'[1,{"b":' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}]", id="far too deep in one place"),
    ],
)
def test_what_is_not(data: bytes) -> None:
    with pytest.raises(BodySyntaxError, match="exceeded max depth of 200"):
        check_nesting(data, msgspec.json.decode(data))
