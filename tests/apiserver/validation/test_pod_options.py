"""What the rules of pods tolerate."""

from __future__ import annotations

from dataclasses import fields

from mooring.apiserver.validation.pod_options import STRICT, STRICT_POD, PodOptions


def test_a_new_object_is_tolerated_nothing() -> None:
    tolerances = [field.name for field in fields(PodOptions) if field.name.startswith("tolerates_")]
    assert not any(getattr(STRICT, name) or getattr(STRICT_POD, name) for name in tolerances)
    assert (STRICT.is_pod, STRICT_POD.is_pod) == (False, True)
