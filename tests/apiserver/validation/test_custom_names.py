"""Names of custom kinds."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.custom_names import names_faults


@pytest.mark.parametrize(
    ("names", "paths"),
    [
        pytest.param(
            {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}, [], id="fine"
        ),
        pytest.param({"plural": "Things", "singular": "1"}, ["names.plural", "names.singular"], id="upper case"),
        pytest.param({"kind": "Thi ng", "listKind": "L_"}, ["names.kind", "names.listKind"], id="odd kinds"),
        pytest.param({"kind": "Thing", "listKind": "Thing"}, ["names.listKind"], id="the same twice"),
        pytest.param({"shortNames": ["ok", "A", ""]}, ["names.shortNames[1]", "names.shortNames[2]"], id="short names"),
        pytest.param({"categories": ["all", "Q"]}, ["names.categories[1]"], id="categories"),
    ],
)
def test_names(names: Document, paths: list[str]) -> None:
    assert [fault.field for fault in names_faults(names, "names")] == paths
