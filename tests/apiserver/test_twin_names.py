"""Which names of an object twins may differ in."""

from __future__ import annotations

import msgspec
import pytest

from mooring.api.kinds import DEPLOYMENT, EVENT, LEASE, POD, REPLICA_SET, Kind
from mooring.apiserver.twin_names import (
    NOBODY,
    names_in_creation,
    names_in_patched,
    names_in_replaced,
    token_volume_in,
)

POD_OF_A_SET = (
    b'{"metadata":{"generateName":"shop-1-","labels":{"app":"shop-1","pod-template-hash":"848857771d","tier":"web"},'
    b'"ownerReferences":[{"kind":"ReplicaSet","name":"shop-1-84885","uid":"11111111-2222-4333-8444-555555555555"}],'
    b'"managedFields":[{"manager":"tester-1"}]},"spec":{"nodeName":"node-7"}}'
)
LONG = "shop-1-" + 60 * "x"


@pytest.mark.parametrize(
    ("kind", "stored", "names"),
    [
        pytest.param(
            POD,
            POD_OF_A_SET,
            [b"me", b"node-7", b"shop-1-", b"shop-1", b"848857771d", b"shop-1-84885"],
            id="a pod: its node's, and all by which it belongs to its set",
        ),
        pytest.param(POD, b'{"metadata":{}}', [b"me", NOBODY], id="a pod without a node"),
        pytest.param(POD, b'{"labels":{"app":"tester-1"},"manager":"tester-1"}', [b"me", NOBODY], id="not a manager's"),
        pytest.param(LEASE, POD_OF_A_SET, [b"me", NOBODY], id="of anything else only its own"),
    ],
)
def test_names_of_what_is_patched(kind: Kind, stored: bytes, names: list[bytes]) -> None:
    assert [*names_in_patched(kind, b"me", stored)] == names


@pytest.mark.parametrize(
    ("kind", "stored", "wanted", "names"),
    [
        pytest.param(REPLICA_SET, b'{"labels":{"app":"shop-1"}}', b"{}", [b"me", NOBODY, b"shop-1"], id="a set's"),
        pytest.param(
            DEPLOYMENT,
            b"{}",
            rb'{"message":"ReplicaSet \"shop-1-84885\" is progressing."}',
            [b"me", b"shop-1-84885\\"],
            id="the set that a Deployment tells of, as far as its closing quote",
        ),
        pytest.param(
            DEPLOYMENT,
            rb'{"message":"Created new replica set \"shop-1-84885\""}',
            b"{}",
            [b"me", b"shop-1-84885\\"],
            id="the set that it told of before",
        ),
        pytest.param(DEPLOYMENT, b'{"manager":"me"}', b"{}", None, id="one that is called like a manager has no twins"),
    ],
)
def test_names_of_what_is_replaced(kind: Kind, stored: bytes, wanted: bytes, names: list[bytes] | None) -> None:
    found = names_in_replaced(kind, b"me", stored, wanted)
    assert (None if found is None else [*found]) == names


@pytest.mark.parametrize(
    ("kind", "metadata", "names"),
    [
        pytest.param(POD, {"generateName": "shop-1-"}, [b"shop-1-"], id="a pod gets its own from the server"),
        pytest.param(REPLICA_SET, {"name": "shop-1-84885"}, [b"shop-1-84885"], id="a set has its own"),
        pytest.param(REPLICA_SET, {"name": LONG}, [NOBODY], id="one that might be too long is looked at"),
        pytest.param(REPLICA_SET, {"name": "Shop"}, [NOBODY], id="one that is wrong is looked at"),
        pytest.param(EVENT, {"name": "it.1"}, [b"it.1", NOBODY, NOBODY, NOBODY], id="an event tells of others"),
    ],
)
def test_names_of_what_is_created(kind: Kind, metadata: dict[str, object], names: list[bytes]) -> None:
    body: dict[str, object] = {"metadata": metadata}
    assert [*names_in_creation(kind, body, msgspec.json.encode(body))] == names


@pytest.mark.parametrize(
    ("pod", "found"),
    [
        pytest.param(b'{"volumes":[{"name":"kube-api-access-x7k2p"}]}', b"kube-api-access-x7k2p", id="there"),
        pytest.param(b'{"volumes":[{"name":"kube-api-access-x7k2pq"}]}', None, id="another one's"),
    ],
)
def test_the_volume_with_the_token(pod: bytes, found: bytes | None) -> None:
    assert token_volume_in(pod) == found
