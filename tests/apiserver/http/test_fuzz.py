"""Thousands of bad requests cause no failure, crash, hang or leak. `make fuzz` sends more of them.

A finding contains the seed and the number of requests to reproduce it:
    python -m tests.apiserver.http.fuzzer --count COUNT --seed SEED
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from tests.apiserver.http.fuzz_requests import requests
from tests.apiserver.http.fuzzer import Fuzzer
from tests.cluster.running import ADMIN_TOKEN, LIMITED_TOKEN, WITHOUT_OTHERS, running
from tests.waiting import wait_until

SEED = 20_260_101
WARM_UP = 4_000
"""Number of requests after which everything that is created on first use exists."""
REQUESTS = 16_000
FILES_MORE_MAX = 8
TASKS_MORE_MAX = 8
BYTES_MORE_MAX = 60 << 20
"""Some created objects are not deleted, so memory may grow by this much."""


def test_the_same_seed_sends_the_same_bytes() -> None:
    sent = [[request.sent(entropy) for request, entropy in islice(requests(SEED), 400)] for _ in range(2)]
    assert sent[0] == sent[1]


def test_bad_requests_are_rejected_without_failures_or_leaks(tmp_path: Path) -> None:
    with running(tmp_path, "--ephemeral", "--anonymous-auth", "--verbose", *WITHOUT_OTHERS) as up:
        fuzzer = Fuzzer(up, SEED)
        fuzzer.run(WARM_UP)
        files, tasks, resident = up.open_files(), up.metric("mooring_tasks"), up.resident_bytes()
        fuzzer.run(REQUESTS)
        findings = fuzzer.read_everything()
        fuzzer.close()
        assert not findings.wrong, f"{findings}\n{up.log()[-5_000:]}"
        assert up.metric("mooring_apiserver_failures_total") == 0, f"{findings}\n{up.log()[-5_000:]}"
        assert {200, 201, 400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 431, 500} <= findings.codes.keys()
        # The server notices closed connections with a delay.
        wait_until(lambda: up.metric("apiserver_longrunning_requests") == 0)
        wait_until(lambda: up.open_files() <= files + FILES_MORE_MAX)
        wait_until(lambda: up.metric("mooring_tasks") <= tasks + TASKS_MORE_MAX)
        assert up.resident_bytes() <= resident + BYTES_MORE_MAX
        assert up.end() == 0
        log = up.log()
        assert "Traceback" not in log
        assert ADMIN_TOKEN not in log
        assert LIMITED_TOKEN not in log
