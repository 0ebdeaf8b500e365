"""Answers to a probe.

Comes in   nothing: these are values
Goes out   `Answer`; or a `ProbeFault`, if the question could not even be put

The texts are the kubelet's, and Go's for what goes wrong on the network: people search for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    SUCCESS = "success"
    WARNING = "warning"
    """A success that somebody should look at."""
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Answer:
    outcome: Outcome
    text: str = ""


class ProbeFault(Exception):
    """The container could not be asked. It is nobody's fault, and counts neither way."""


def failure(text: str) -> Answer:
    return Answer(Outcome.FAILURE, text)
