"""How long a node waits until its next failed pod is deleted."""

from __future__ import annotations

from mooring.controllers.daemonset.backoff import FORGOTTEN_AFTER_S, FailedPodsBackoff


def test_each_failure_doubles_the_wait() -> None:
    backoff = FailedPodsBackoff()
    assert backoff.wait_s("n1", 0.0) == 0.0
    backoff.note("n1", 0.0)
    assert backoff.wait_s("n1", 0.5) == 1.0
    assert backoff.wait_s("n2", 0.5) == 0.0
    assert backoff.wait_s("n1", 1.0) == 0.0
    backoff.note("n1", 1.0)
    assert backoff.wait_s("n1", 2.9) == 2.0
    assert backoff.wait_s("n1", 3.0) == 0.0


def test_who_has_not_failed_for_long_begins_anew() -> None:
    backoff = FailedPodsBackoff()
    for _ in range(20):
        backoff.note("n1", 0.0)
    assert backoff.wait_s("n1", 1.0) == 900.0
    backoff.note("n2", FORGOTTEN_AFTER_S + 1)
    backoff.note("n1", FORGOTTEN_AFTER_S + 1)
    assert backoff.wait_s("n1", FORGOTTEN_AFTER_S + 1.5) == 1.0
