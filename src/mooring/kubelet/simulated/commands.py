"""Commands that hollow nodes follow: those that need neither an image nor files to know how they end.

Input: the command and the args of a container. Output: its stage set; None if a part of the command is not known.

    true  false  :  echo TEXT...  sleep N[smhd]...  sleep infinity  exit [N]

alone, or in a script of a shell (`sh -c`), joined by `;`, newlines, `&&` and `||`.

 1. What is not known is not guessed: a script with variables, quoted operators, pipes, redirections or other programs
    is no known command.
 2. A shell prints what it echoes; the log has it at the time at which it would be printed.
 3. SIGTERM ends a command with code 143, as in the process runtime.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from posixpath import basename

from mooring.kubelet.runtime import Role
from mooring.kubelet.simulated.stages import Stage, StageSet, StageState, StopBehavior, Transition

COMMANDS_REMEMBERED = 1024
SCRIPT_CHARACTERS_MAX = 1024
SHELLS = frozenset({"sh", "bash", "ash", "dash"})
RUN_S = 0.1
"""The duration of a command that does not sleep."""
STOP = StopBehavior(exit_code=143)

_UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
_SPECIAL = re.compile(r"[$`\\*?\[\]{}()<>~#!]")
"""Characters whose meaning takes a shell."""
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
_OPERATORS = frozenset({";", "&&", "||"})


class _UnknownCommandError(Exception):
    """A part of the command is not known."""


class _CommandStages:
    """The stages of a command, added while it is followed."""

    def __init__(self, role: Role) -> None:
        self._for_annotation = "mooring.dev/init-for" if role is Role.INIT else "mooring.dev/run-for"
        self._log: list[str] = []
        reason = "PodInitializing" if role is Role.INIT else "ContainerCreating"
        self.stages = [Stage("creating", StageState.WAITING, reason, for_s=0.2, jitter_s=0.2)]

    def echo(self, text: str) -> None:
        self._log += text.split("\n")

    def sleep(self, for_s: float | None) -> None:
        name = f"running-{len(self.stages)}"
        self.stages.append(Stage(name, StageState.RUNNING, for_s=for_s, log=self._taken_log()))

    def end(self, code: int) -> None:
        """Add the end. A pod annotation overrides the duration of the last stage before it."""
        if len(self.stages) == 1:
            self.sleep(RUN_S)
        self.stages[-1] = replace(self.stages[-1], for_annotation=self._for_annotation)
        self.stages.append(Stage("ended", StageState.TERMINATED, exit_code=code, log=self._taken_log()))

    def _taken_log(self) -> tuple[str, ...]:
        log, self._log = tuple(self._log), []
        return log


@lru_cache(COMMANDS_REMEMBERED)
def stage_set_of_command(command: tuple[str, ...], args: tuple[str, ...], role: Role) -> StageSet | None:
    """The stage set of a known command. Without `command` the image decides what runs, which is not known here."""
    if not command or any(character in word for word in (*command, *args) for character in "${"):
        return None
    run = _CommandStages(role)
    try:
        code = _follow([*command, *args], run)
    except (_UnknownCommandError, ValueError):
        return None
    if code is not None:
        run.end(code)
    stages = {stage.name: stage for stage in _connected(run.stages)}
    return StageSet("command", stages, STOP)


def exit_code_of_command(command: tuple[str, ...]) -> int | None:
    """The exit code of a known command; None if it is not known or never ends."""
    stage_set = stage_set_of_command(command, (), Role.CONTAINER)
    ends = stage_set.stages.get("ended") if stage_set is not None else None
    return ends.exit_code if ends is not None else None


def _connected(stages: Sequence[Stage]) -> Iterator[Stage]:
    for stage, after in zip(stages, [*stages[1:], None], strict=True):
        transitions = (Transition(after.name),) if after is not None else ()
        yield replace(stage, transitions=transitions)


def _follow(argv: Sequence[str], run: _CommandStages) -> int | None:
    """The exit code of a command; None if it never ends. Raises `_UnknownCommandError` and `ValueError`."""
    if basename(argv[0]) in SHELLS:
        if len(argv) != 3 or argv[1] != "-c":
            raise _UnknownCommandError
        return _follow_script(argv[2], run)
    if argv[0] in ("exit", ":"):
        raise _UnknownCommandError  # only a shell has them
    return _follow_one(argv, run)[0]


def _follow_script(script: str, run: _CommandStages) -> int | None:
    code, operator = 0, ";"
    for argv, next_operator in _commands(script):
        is_run = operator == ";" or (operator == "&&") is (code == 0)
        if is_run:
            result, is_exit = _follow_one(argv, run, code)
            if result is None or is_exit:
                return result
            code = result
        else:
            _follow_one(argv, _CommandStages(Role.CONTAINER))  # not run, but has to be known
        operator = next_operator
    return code


def _commands(script: str) -> Iterator[tuple[list[str], str]]:
    """The simple commands of a script, each with the operator after it."""
    is_beyond = len(script) > SCRIPT_CHARACTERS_MAX or _SPECIAL.search(script) is not None
    if is_beyond or any(character in quoted for quoted in _QUOTED.findall(script) for character in ";&|\n"):
        raise _UnknownCommandError
    lexer = shlex.shlex(script.replace("\n", " ; "), posix=True, punctuation_chars=";&|")
    lexer.whitespace_split, lexer.commenters = True, ""
    argv: list[str] = []
    for word in lexer:
        if not word or word[0] not in ";&|":
            argv.append(word)
        elif word not in _OPERATORS or (word != ";" and not argv):
            raise _UnknownCommandError
        elif argv:
            yield argv, word
            argv = []
    if argv:
        yield argv, ";"


def _follow_one(argv: Sequence[str], run: _CommandStages, last_code: int = 0) -> tuple[int | None, bool]:
    """The exit code of a simple command, None if it never ends; and whether it ends the script."""
    match basename(argv[0]), argv[1:]:
        case (("true" | ":"), _):
            return 0, False
        case "false", _:
            return 1, False
        case "echo", words if not any(word.startswith("-") for word in words):
            run.echo(" ".join(words))
            return 0, False
        case "sleep", ["infinity" | "inf"]:
            run.sleep(None)
            return None, False
        case "sleep", [_, *_] as words:
            run.sleep(sum(_seconds(word) for word in words))
            return 0, False
        case "exit", []:
            return last_code, True
        case "exit", [code] if code.isdecimal():
            return int(code) % 256, True
        case _:
            raise _UnknownCommandError


def _seconds(word: str) -> float:
    found = _NUMBER.fullmatch(word)
    if found is None:
        raise _UnknownCommandError
    return float(found[1]) * _UNITS_S[found[2]]
