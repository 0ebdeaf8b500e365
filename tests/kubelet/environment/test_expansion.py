"""`$(VAR)` in texts: the cases of the original."""

from __future__ import annotations

import pytest

from mooring.kubelet.environment.expansion import expanded, expanded_by

VARIABLES = {"VAR_A": "A", "VAR_B": "B", "VAR_C": "C", "VAR_REF": "$(VAR_A)", "VAR_EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("$(VAR_A)", "A", id="the whole text"),
        pytest.param("___$(VAR_B)___", "___B___", id="in the middle"),
        pytest.param("$(VAR_A)$(VAR_B)", "AB", id="two together"),
        pytest.param("$(VAR_REF)", "$(VAR_A)", id="not twice"),
        pytest.param("$(VAR_EMPTY)x", "x", id="an empty one is there"),
        pytest.param("$(VAR_X)", "$(VAR_X)", id="an unknown one stays"),
        pytest.param("$$(VAR_A)", "$(VAR_A)", id="two dollars are one"),
        pytest.param("$$$(VAR_A)", "$A", id="three: a dollar and a value"),
        pytest.param("$$$$(VAR_A)", "$$(VAR_A)", id="four are two"),
        pytest.param("f000-$VAR_A", "f000-$VAR_A", id="no brackets, no variable"),
        pytest.param("$(VAR_A", "$(VAR_A", id="never closed"),
        pytest.param("$(VAR_A$(VAR_B)", "$(VAR_A$(VAR_B)", id="closed by the next one"),
        pytest.param("$()", "$()", id="without a name"),
        pytest.param("foo$", "foo$", id="a dollar at the end"),
        pytest.param("$?x", "$?x", id="a dollar and something else"),
        pytest.param("VAR_A))", "VAR_A))", id="only closed"),
        pytest.param("%!(VAR_A)é$(VAR_A)", "%!(VAR_A)éA", id="letters beyond ASCII"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_a_text_is_expanded(text: str, wanted: str) -> None:
    assert expanded(text, VARIABLES) == wanted


def test_somebody_else_can_say_what_a_name_means() -> None:
    assert expanded_by("a-$(b)-$$(c)", str.upper) == "a-B-$(c)"
