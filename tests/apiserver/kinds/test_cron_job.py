"""Tests of kinds.cron_job."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.workload_builders import GONE, body, changed, created, updated

IN_SCHEDULE = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param({"spec__schedule": GONE}, ["spec.schedule: Required value"], id="no schedule"),
        pytest.param(
            {"spec__schedule": "TZ=UTC * * * * *"},
            [f'spec.schedule: Invalid value: "TZ=UTC * * * * *": {IN_SCHEDULE}'],
            id="a time zone in the schedule",
        ),
        pytest.param(
            {"spec__schedule": "TZ=UTC x"},
            [
                'spec.schedule: Invalid value: "TZ=UTC x": expected exactly 5 fields, found 1: [x]',
                f'spec.schedule: Invalid value: "TZ=UTC x": {IN_SCHEDULE}',
            ],
            id="a time zone before nonsense",
        ),
        pytest.param({"spec__timeZone": "Europe/Berlin"}, [], id="a time zone"),
        pytest.param(
            {"spec__timeZone": ""},
            ['spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string'],
            id="an empty time zone",
        ),
        pytest.param(
            {"spec__timeZone": "LOCAL"},
            [
                'spec.timeZone: Invalid value: "LOCAL": '
                "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
                'spec.timeZone: Invalid value: "LOCAL": unknown time zone LOCAL',
            ],
            id="the local time zone",
        ),
        pytest.param(
            {"spec__timeZone": "a/../b"},
            ['spec.timeZone: Invalid value: "a/../b": unknown time zone a/../b'],
            id="a time zone with a parent segment",
        ),
        pytest.param(
            {"spec__concurrencyPolicy": "Never"},
            ['spec.concurrencyPolicy: Unsupported value: "Never": supported values: "Allow", "Forbid", "Replace"'],
            id="an unknown policy",
        ),
        pytest.param(
            {"metadata__name": "c" * 53},
            [f'metadata.name: Invalid value: "{"c" * 53}": must be no more than 52 characters'],
            id="a name too long for the timestamp",
        ),
        pytest.param(
            {"spec__jobTemplate__spec__selector": {}, "spec__jobTemplate__spec__manualSelector": True},
            [
                "spec.jobTemplate.spec.selector: Invalid value: {}: `selector` will be auto-generated",
                'spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"',
            ],
            id="jobs with a selector",
        ),
    ],
)
def test_cron_jobs_are_validated(changes: dict[str, Any], errors: list[str]) -> None:
    assert created(body("CronJob", **changes)).errors == errors


def test_a_time_zone_that_was_in_the_schedule_is_accepted_on_update() -> None:
    zoned = "TZ=UTC 0 * * * *"
    old = created(body("CronJob", spec__schedule=zoned)).obj
    assert updated(body("CronJob", spec__schedule="TZ=UTC 5 * * * *"), old).errors == []
    assert updated(body("CronJob", spec__schedule=zoned, spec__timeZone="UTC"), old).errors == [
        f'spec.schedule: Invalid value: "{zoned}": cannot use both timeZone field and TZ or CRON_TZ in schedule'
    ]


def test_job_templates_of_cron_jobs_are_not_defaulted_like_jobs() -> None:
    obj = created(body("CronJob")).obj
    assert obj["status"] == {}
    assert "completions" not in obj["spec"]["jobTemplate"]["spec"]


def test_a_time_zone_in_the_schedule_has_a_warning() -> None:
    zoned = "TZ=UTC 0 * * * *"
    old = created(body("CronJob", spec__schedule=zoned)).obj
    assert updated(body("CronJob", spec__schedule=zoned), old).warnings == [
        "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
        "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
    ]


def test_status_updates_of_cron_jobs_are_not_validated() -> None:
    old = created(body("CronJob")).obj
    status = {"active": [{"name": "j"}]}
    raw = {**changed(old, status=status, spec__suspend=True), "kind": "CronJob", "apiVersion": "batch/v1"}
    outcome = updated(raw, old, "status")
    assert outcome.errors == []
    assert outcome.obj["spec"]["suspend"] is False
