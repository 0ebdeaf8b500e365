"""When an endpoint does not answer, another is asked; and a write whose answer was lost is known to be unknown."""

from __future__ import annotations

import pytest

from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.store.etcd.errors import EtcdUnreachable
from mooring.store.etcd.store import EtcdStore
from mooring.store.interface import OutcomeUnknown, StoreChange
from tests.ports import silent_port
from tests.store.contract import PODS, WEB, gather
from tests.store.etcd.builders import HASTY, QUICK, Etcd, Proxy, once_reachable, play, until_noticed
from tests.waiting import LIMIT_S


def test_an_endpoint_where_nobody_listens_is_passed_over(etcd: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        await store.put(WEB, b"one")
        assert await store.get(WEB) is not None
        assert store.statistics()["endpoint_changes"] == 1

    with silent_port() as port:
        play(f"etcd://127.0.0.1:{port},{etcd.endpoint}", scenario)


def test_when_an_endpoint_goes_away_the_next_takes_over(etcd: Etcd) -> None:
    async def scenario() -> None:
        async with Proxy(etcd.endpoint) as first, Proxy(etcd.endpoint) as second:
            url = f"etcd://{first.endpoint},{second.endpoint}"
            async with await EtcdStore.open(url, SystemClock(), QUICK) as store:
                seen: list[StoreChange] = []
                async with store.watch(PODS, since=await store.revision()) as watch:
                    for gone, back in [(first, second), (second, first), (first, second)]:
                        await back.cut()
                        await back.mend()
                        await gone.cut()
                        await until_noticed(store, gone.endpoint)
                        await store.put(WEB, b"x")
                        assert await store.get(WEB) is not None
                        seen += await gather(watch.next_batch, 1)
                        await gone.mend()
                assert len(seen) == 3
                assert store.statistics()["endpoint_changes"] >= 3

    run_real(scenario())


@pytest.mark.parametrize("endpoints", [1, 2])
def test_an_etcd_that_nobody_finds_is_said_to_be_unreachable_in_one_line(endpoints: int) -> None:
    async def scenario(url: str) -> None:
        with pytest.raises(EtcdUnreachable, match="cannot be reached") as unreachable:
            await EtcdStore.open(url, SystemClock(), HASTY)
        assert "\n" not in str(unreachable.value)
        assert ("none of 2 endpoints answers" in str(unreachable.value)) is (endpoints == 2)

    with silent_port() as one, silent_port() as other:
        run_real(scenario("etcd://" + ",".join(f"127.0.0.1:{port}" for port in (one, other)[:endpoints])))


def test_a_write_without_an_answer_is_unknown_and_what_became_of_it_is_seen_later(etcd_alone: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        async with store.watch(PODS, since=await store.revision()) as watch:
            (wire,) = store._endpoints._wires
            wire._request_s_max = 0.3
            etcd_alone.pause()
            with pytest.raises(OutcomeUnknown, match="may have been carried out"):
                await store.put(WEB, b"one")
            with pytest.raises(EtcdUnreachable, match="did not answer in time"):
                await store.get(WEB)
            wire._request_s_max = LIMIT_S
            etcd_alone.resume()
            found = await once_reachable(lambda: store.get(WEB))
            await store.put(WEB, b"two")
            # If the first write was not there to be read, it may still have come before the second one.
            told: list[bytes | None] = []
            while told[-1:] != [b"two"]:
                told += [change.value for change in await gather(watch.next_batch, 1)]
            assert told in ([[b"one", b"two"]] if found is not None else [[b"two"], [b"one", b"two"]])
            assert store.statistics()["writes_outcome_unknown"] == 1

    play(etcd_alone.url, scenario, HASTY)


def test_a_write_that_was_never_sent_is_not_unknown(etcd_alone: Etcd) -> None:
    async def scenario(store: EtcdStore) -> None:
        etcd_alone.kill()
        await until_noticed(store, etcd_alone.endpoint)
        with pytest.raises(EtcdUnreachable):
            await store.put(WEB, b"one")
        etcd_alone.start()
        await once_reachable(lambda: store.get(WEB))
        await store.put(WEB, b"two")
        assert store.statistics()["writes_outcome_unknown"] == 0

    play(etcd_alone.url, scenario, HASTY)
