"""Cron jobs, created and changed."""

from __future__ import annotations

from tests.apiserver.workload_builders import body, changed, created, updated


def test_the_jobs_of_a_cron_job_are_not_defaulted_yet() -> None:
    obj = created(body("CronJob")).obj
    assert obj["status"] == {}
    assert "completions" not in obj["spec"]["jobTemplate"]["spec"]


def test_a_time_zone_in_the_schedule_is_warned_of() -> None:
    zoned = "TZ=UTC 0 * * * *"
    old = created(body("CronJob", spec__schedule=zoned)).obj
    assert updated(body("CronJob", spec__schedule=zoned), old).warnings == [
        "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
        "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
    ]


def test_any_status_will_do() -> None:
    old = created(body("CronJob")).obj
    status = {"active": [{"name": "j"}]}
    raw = {**changed(old, status=status, spec__suspend=True), "kind": "CronJob", "apiVersion": "batch/v1"}
    outcome = updated(raw, old, "status")
    assert outcome.faults == []
    assert outcome.obj["spec"]["suspend"] is False
