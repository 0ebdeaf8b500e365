"""Endpoints that were let pass once are not judged again as long as they stay."""

from __future__ import annotations

from mooring.api.kinds import ENDPOINTS
from tests.apiserver.core_documents import call, changed, document, strategy

BAD = [{"addresses": [{"ip": "127.0.0.1"}]}]
ODD = [{"notReadyAddresses": [{"ip": "2001:DB8::1"}]}]


def test_what_is_as_it_was_is_not_judged_again() -> None:
    old = document(ENDPOINTS, subsets=BAD)
    assert changed(ENDPOINTS, old, metadata={"labels": {"a": "b"}})[0] == []
    assert len(changed(ENDPOINTS, old, subsets=[*BAD, *BAD])[0]) == 2


def test_odd_addresses_are_told_unless_the_controller_wrote_them() -> None:
    how, managed = strategy(ENDPOINTS), {"labels": {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}}
    assert how.warnings_on_create(document(ENDPOINTS, subsets=ODD), call(ENDPOINTS)) == [
        'subsets[0].notReadyAddresses[0].ip: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format '
        '("2001:db8::1")'
    ]
    assert how.warnings_on_create(document(ENDPOINTS, managed, subsets=ODD), call(ENDPOINTS)) == []
