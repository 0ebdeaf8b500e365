from __future__ import annotations

import pytest

from mooring.api import kinds
from mooring.apiserver.access.users import User
from mooring.apiserver.call import Call, FieldValidation
from mooring.apiserver.wire.strict import apply_field_validation, warnings

ERRORS = ['unknown field "a"', 'duplicate field "b"']


@pytest.mark.parametrize(
    ("validation", "raised", "warned"),
    [
        (FieldValidation.IGNORE, None, []),
        (FieldValidation.WARN, None, ERRORS),
        (FieldValidation.STRICT, 'strict decoding error: unknown field "a", duplicate field "b"', []),
    ],
    ids=lambda value: getattr(value, "value", None),
)
def test_field_validation_modes(validation: FieldValidation, raised: str | None, warned: list[str]) -> None:
    call = Call("create", kinds.POD, User("somebody"), 0.0, "", field_validation=validation)
    assert apply_field_validation(ERRORS, call) == raised
    assert call.warnings == warned


def test_yaml_errors_contain_several_lines() -> None:
    error = 'yaml: unmarshal errors:\n  line 3: key "a" already set in map\n  line 5: key "b" already set in map'
    assert warnings([error, "other"]) == [
        'line 3: key "a" already set in map',
        'line 5: key "b" already set in map',
        "other",
    ]
