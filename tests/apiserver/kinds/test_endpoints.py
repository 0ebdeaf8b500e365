"""Tests of kinds.endpoints."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import ENDPOINTS
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.kinds.endpoints import validate_subsets
from tests.apiserver.core_documents import call, changed, document, messages, strategy


def test_ports_default_to_tcp() -> None:
    endpoints: Document = {"subsets": [{"ports": [{"port": 1}, {"port": 2, "protocol": "UDP"}]}, {}]}
    strategy_of(ENDPOINTS).default(endpoints)
    assert endpoints["subsets"][0]["ports"] == [{"port": 1, "protocol": "TCP"}, {"port": 2, "protocol": "UDP"}]
    strategy_of(ENDPOINTS).default({})


ADDRESSES = [{"ip": "1.2.3.4"}]


@pytest.mark.parametrize(
    ("subset", "errors"),
    [
        pytest.param({"addresses": ADDRESSES, "ports": [{"port": 1}]}, [], id="one address and one port"),
        pytest.param({"notReadyAddresses": ADDRESSES}, [], id="not ready, and no port"),
        pytest.param(
            {}, ["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"], id="no address"
        ),
        pytest.param(
            {"addresses": [{"ip": "x", "hostname": "a.b", "nodeName": ""}]},
            [
                'subsets[0].addresses[0].ip: Invalid value: "x": must be a valid IP address, '
                "(e.g. 10.9.8.7 or 2001:db8::ffff)",
                'subsets[0].addresses[0].hostname: Invalid value: "a.b": must not contain dots',
                "subsets[0].addresses[0].nodeName",
                'subsets[0].addresses[0].ip: Invalid value: "x": must be a valid IP address',
            ],
            id="an invalid address",
        ),
        pytest.param(
            {"addresses": ADDRESSES, "ports": [{"port": 0}, {"name": "a", "port": 1, "protocol": "X"}]},
            [
                "subsets[0].ports[0].name: Required value",
                "subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                'subsets[0].ports[1].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
            ],
            id="invalid ports",
        ),
    ],
)
def test_subsets_are_validated(subset: Document, errors: list[str]) -> None:
    found = messages(validate_subsets(document(ENDPOINTS, subsets=[subset])))
    assert len(found) == len(errors)
    assert all(message.startswith(expected) for message, expected in zip(found, errors, strict=True)), found


BAD = [{"addresses": [{"ip": "127.0.0.1"}]}]
NOT_CANONICAL = [{"notReadyAddresses": [{"ip": "2001:DB8::1"}]}]


def test_unchanged_endpoints_are_not_validated_again() -> None:
    old = document(ENDPOINTS, subsets=BAD)
    assert changed(ENDPOINTS, old, metadata={"labels": {"a": "b"}})[0] == []
    assert len(changed(ENDPOINTS, old, subsets=[*BAD, *BAD])[0]) == 2


def test_addresses_that_are_not_canonical_have_a_warning_unless_managed_by_the_controller() -> None:
    kind_strategy, managed = (
        strategy(ENDPOINTS),
        {"labels": {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}},
    )
    assert kind_strategy.warnings_on_create(document(ENDPOINTS, subsets=NOT_CANONICAL), call(ENDPOINTS)) == [
        'subsets[0].notReadyAddresses[0].ip: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format '
        '("2001:db8::1")'
    ]
    assert kind_strategy.warnings_on_create(document(ENDPOINTS, managed, subsets=NOT_CANONICAL), call(ENDPOINTS)) == []
