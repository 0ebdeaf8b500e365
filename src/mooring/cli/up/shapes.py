"""What hollow nodes are like, from the options of `mooring up` and `mooring nodes`.

Problems with an amount, a name or the file of node templates are raised as an `InputError`, with file and line, before
anything starts.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mooring.api.yaml import YamlError
from mooring.cli.errors import InputError, Problem, input_error
from mooring.cli.flags import names_in
from mooring.cluster.settings import PROCESS, ZONES, NodeShapes


@dataclass(frozen=True, slots=True)
class ShapeOptions:
    """The options as they were given; None: not given."""

    zones: str | None = None
    cpu: str | None = None
    memory: str | None = None
    pods: int | None = None
    node_templates: Path | None = None

    def given(self) -> list[str]:
        names = [field.name for field in fields(self) if getattr(self, field.name) is not None]
        return [f"--{name.replace('_', '-')}" for name in names]


def shape_options(flags: dict[str, Any]) -> ShapeOptions:
    """Takes the options about shapes out of the flags."""
    return ShapeOptions(**{field.name: flags.pop(field.name) for field in fields(ShapeOptions)})


def node_shapes(options: ShapeOptions, count: int, runtime: str, name_prefix: str = "node-") -> NodeShapes:
    """Raises `InputError`."""
    given = options.given()
    if given and runtime == PROCESS:
        raise input_error(f"{given[0]} and --runtime process contradict each other: those nodes are this machine")
    if not given and name_prefix == "node-":
        return NodeShapes()  # the usual case, which need not import the kubelet now
    usual = NodeShapes()
    file = options.node_templates
    shapes = NodeShapes(
        cpu=options.cpu if options.cpu is not None else usual.cpu,
        memory=options.memory if options.memory is not None else usual.memory,
        pods=options.pods if options.pods is not None else usual.pods,
        zones=names_in(options.zones) if options.zones is not None else ZONES,
        templates=_content(file) if file is not None else "",
        templates_file=str(file) if file is not None else "",
    )
    _check(shapes, count, name_prefix)
    return shapes


def _check(shapes: NodeShapes, count: int, name_prefix: str) -> None:
    from mooring.kubelet.node_templates import NodeTemplateError  # imports the kubelet

    try:
        shapes.kubelet_settings(count, name_prefix=name_prefix)
    except NodeTemplateError as error:
        raise InputError([Problem(where, text) for where, text in error.problems]) from None
    except YamlError as error:
        where = f"{shapes.templates_file}:{error.line}"
        raise input_error(f"cannot be read as YAML or JSON: {error.text}", where) from None
    except ValueError as error:
        raise input_error(str(error)) from None


def _content(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise input_error(f"cannot be read: {error}", str(file)) from None
    if not text.strip():
        raise input_error("is empty; wanted the list nodeTemplates", str(file))
    return text
