"""The vocabulary of configuration types."""

import pytest

from mooring.scheduler.config.fields import INT32, INT64, Settings


class Lamp(Settings):
    colour_code: int = 3


def test_settings_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Lamp().colour_code = 4  # type: ignore[misc]


def test_integers_are_those_of_kubernetes() -> None:
    assert (INT32.lowest, INT32.highest) == (-2147483648, 2147483647)
    assert (INT64.lowest, INT64.highest) == (-9223372036854775808, 9223372036854775807)
