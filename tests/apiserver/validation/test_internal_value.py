"""Values as kube-apiserver prints its own structs."""

from __future__ import annotations

from mooring.apiserver.validation.internal_value import internal_diff, internal_value, internal_values


def test_every_field_is_there_under_its_go_name() -> None:
    assert internal_value({"type": "Localhost"}, "SeccompProfile") == {"Type": "Localhost", "LocalhostProfile": None}


def test_a_list_that_is_not_there_is_null() -> None:
    assert internal_values(None, "PodIP") is None
    assert internal_values([{"ip": "1.1.1.1"}], "PodIP") == [{"Ip": "1.1.1.1"}]


def test_a_diff_shows_what_changed_and_a_little_around() -> None:
    old, new = {"name": "a", "image": "x"}, {"name": "a", "image": "y"}
    lines = internal_diff(old, new, "Container").splitlines()
    assert lines[0].startswith("@@ -1,")
    assert [line for line in lines if line[0] in "+-"] == ['- "Image": "x",', '+ "Image": "y",']
