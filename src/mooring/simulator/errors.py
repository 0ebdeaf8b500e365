"""Problems of scenario files and traces."""

from __future__ import annotations


class ScenarioError(Exception):
    """An input file is wrong. `where` is `FILE:LINE` or a file."""

    def __init__(self, where: str, text: str) -> None:
        super().__init__(where, text)
        self.where = where
        self.text = text

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" if self.where else self.text
