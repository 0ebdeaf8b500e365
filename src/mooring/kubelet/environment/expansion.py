"""Expansion: `$(VAR)` in a text becomes the value of VAR.

    $(VAR)   its value; if there is none, the text as it stands
    $$       one dollar, so that $$(VAR) stays $(VAR)
    $x  $(   as they stand

Nothing is expanded twice: a value that holds `$(OTHER)` keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """With the variables that are known; the others stay as they are written."""
    return expanded_by(text, lambda name: variables.get(name, f"$({name})"))


def expanded_by(text: str, value_of: Callable[[str], str]) -> str:
    """With whatever `value_of` says of each name."""
    if "$" not in text:
        return text
    parts: list[str] = []
    cursor = 0
    while (dollar := text.find("$", cursor)) >= 0 and dollar + 1 < len(text):
        parts.append(text[cursor:dollar])
        following = text[dollar + 1]
        closer = text.find(")", dollar + 2) if following == "(" else -1
        if closer >= 0:
            parts.append(value_of(text[dollar + 2 : closer]))
            cursor = closer + 1
        else:
            parts.append("$" if following == "$" else f"${following}")
            cursor = dollar + 2
    parts.append(text[cursor:])
    return "".join(parts)
