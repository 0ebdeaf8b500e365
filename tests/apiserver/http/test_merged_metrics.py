"""One text of the metrics of several components."""

from __future__ import annotations

from mooring.apiserver.http.metrics import merged_metrics

OWN = b"# HELP a_total A.\n# TYPE a_total counter\na_total 1.0\n# HELP b B.\n# TYPE b gauge\nb 2.0\n"
OTHER = b'# HELP b B.\n# TYPE b gauge\nb 3.0\n# HELP c C.\n# TYPE c gauge\nc{x="# no help"} 4.0\n'


def test_a_metric_that_both_have_is_that_of_the_first() -> None:
    assert merged_metrics(OWN, OTHER) == OWN + b'# HELP c C.\n# TYPE c gauge\nc{x="# no help"} 4.0\n'


def test_nothing_to_add() -> None:
    assert merged_metrics(OWN, b"") == OWN
