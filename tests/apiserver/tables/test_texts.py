from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.tables.texts import access_modes_text, bare_selector_text, cut_short, labels_text, selector_text


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (None, "<none>"),
        ({}, "<none>"),
        ({"matchLabels": {"b": "1", "a": "2"}}, "a=2,b=1"),
        (
            {
                "matchLabels": {"z": "1"},
                "matchExpressions": [
                    {"key": "m", "operator": "In", "values": ["y", "x"]},
                    {"key": "k", "operator": "NotIn", "values": ["q"]},
                    {"key": "e", "operator": "Exists"},
                    {"key": "f", "operator": "DoesNotExist"},
                ],
            },
            "e,!f,k notin (q),m in (x,y),z=1",
        ),
    ],
)
def test_selectors(selector: Document | None, text: str) -> None:
    assert selector_text(selector) == text
    assert bare_selector_text(selector) == text.replace("<none>", "")


def test_labels_access_modes_and_long_lists() -> None:
    assert labels_text({"b": "", "a": "1"}) == "a=1,b="
    assert labels_text({}) == "<none>"
    assert access_modes_text(["ReadWriteOncePod", "ReadWriteMany", "ReadWriteOnce", "ReadOnlyMany"]) == (
        "RWO,ROX,RWX,RWOP"
    )
    assert cut_short(["a", "b", "c"], 3) == "a,b,c"
    assert cut_short(["a", "b", "c"], 7) == "a,b,c + 4 more..."
