"""The stories of this folder, told: every command is run against a `mooring up`, and what it says is compared.

Comes in   the console blocks of the pages here, and the command that brings up the cluster in the README
Goes out   a failed test that shows the command, what the page says and what was said

 1. A command that looks is asked again until it says what the page says: a cluster takes a moment to converge.
    One that acts is run once.
 2. `…` in a line stands for anything in that line; alone on a line, for any number of lines. Blanks are not counted
    and empty lines are passed over: the width of a table's column depends on names that are drawn.
 3. A story that begins with its own `mooring up` is told on that; all others share the cluster of the README.
 4. Each story is told by the kubectl that is on the PATH. Where there is none no story is collected, and the header of
    the test run says so.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from tests.cluster.running import Up, running
from tests.waiting import LIMIT_S

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
STORIES = sorted(HERE.glob("[0-9]*.md"))
LOOK_EACH_S = 0.2
LOOKING = ("get", "logs", "rollout status", "rollout history")

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_ANYTHING = "…"


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a story, and what it is to say."""

    command: str
    lines: tuple[str, ...]

    @property
    def only_looks(self) -> bool:
        return self.command.removeprefix("kubectl ").startswith(LOOKING)

    @property
    def brings_up(self) -> bool:
        return self.command.startswith("mooring up ")

    def is_told_by(self, output: str) -> bool:
        told = (_squeezed(line) for line in output.splitlines())
        return bool(_pattern(self.lines).fullmatch("".join(f"{line}\n" for line in told if line)))


def steps_of(page: Path) -> list[Step]:
    blocks = _BLOCK.findall(page.read_text(encoding="utf-8"))
    parts = (part for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:])
    return [Step(lines[0], tuple(lines[1:])) for lines in (part.splitlines() for part in parts)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with brought_up(steps_of(HERE / "README.md")[0], tmp_path_factory.mktemp("stories")) as up:
        yield up


@contextmanager
def brought_up(step: Step, folder: Path) -> Iterator[Up]:
    """As the page says, but for the place of the kubeconfig."""
    words = shlex.split(step.command)
    assert words[:2] == ["mooring", "up"]
    at = words.index("--kubeconfig")
    with running(folder, *words[2:at], *words[at + 2 :]) as up:
        yield up


@pytest.mark.parametrize("page", STORIES, ids=lambda page: page.stem)
def test_a_story_goes_as_it_is_told(page: Path, cluster: Up, tmp_path: Path) -> None:
    first, *others = steps_of(page)
    if first.brings_up:
        with brought_up(first, tmp_path) as own:
            run_real(_tell(others, own))
    else:
        run_real(_tell([first, *others], cluster))


if shutil.which("kubectl") is None:
    del test_a_story_goes_as_it_is_told  # so that it is not collected; without stories to tell it would be skipped


async def _tell(steps: list[Step], cluster: Up) -> None:
    clock = SystemClock()
    for step in steps:
        end_s = clock.now_s() + LIMIT_S
        output = await _said(step.command, cluster)
        while step.only_looks and not step.is_told_by(output) and clock.now_s() < end_s:
            await clock.wait(LOOK_EACH_S)
            output = await _said(step.command, cluster)
        wanted = "\n".join(step.lines)
        assert step.is_told_by(output), f"$ {step.command}\n--- the page says\n{wanted}\n--- it said\n{output}"


async def _said(command: str, cluster: Up) -> str:
    """What a shell shows after a command, of both of its streams."""
    process = await asyncio.create_subprocess_shell(
        command,
        cwd=ROOT,
        env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(LIMIT_S):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"nothing within {LIMIT_S} s"
    return output.decode()


def _pattern(lines: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("".join(_line_pattern(_squeezed(line)) for line in lines if line))


def _line_pattern(line: str) -> str:
    if line == _ANYTHING:
        return r"(?:.*\n)*?"
    return ".*?".join(re.escape(part) for part in line.split(_ANYTHING)) + r"\n"


def _squeezed(line: str) -> str:
    return " ".join(line.split())


# ------------------------------------------------------------------------------------------ the pages, and the player


@pytest.mark.parametrize("page", STORIES, ids=lambda page: page.stem)
def test_a_story_has_steps_with_answers_and_is_in_the_readme(page: Path) -> None:
    steps = steps_of(page)
    assert len(steps) >= 5
    others = steps[1:] if steps[0].brings_up else steps
    assert [step.command for step in others if not step.command.startswith("kubectl ")] == []
    assert [step.command for step in steps if not any(line.strip(f" {_ANYTHING}") for line in step.lines)] == []
    assert f"({page.name})" in (HERE / "README.md").read_text(encoding="utf-8")


def test_every_manifest_belongs_to_a_story() -> None:
    told = "".join(page.read_text(encoding="utf-8") for page in STORIES)
    files = [path.name for path in HERE.iterdir() if path.suffix in (".yaml", ".json")]
    assert [name for name in files if f"examples/stories/{name}" not in told] == []


@pytest.mark.parametrize(
    ("lines", "output", "is_told"),
    [
        pytest.param(("a 1", "b 2"), "a 1\nb 2\n", True, id="the same"),
        pytest.param(("a   1 ",), "a 1\n", True, id="blanks are not counted"),
        pytest.param(("a 1", "", "b 2"), "\na 1\nb 2\n\n", True, id="empty lines are passed over"),
        pytest.param(("a 1",), "a 2\n", False, id="something else"),
        pytest.param(("a 1",), "a 1\nb 2\n", False, id="a line too many"),
        pytest.param(("a 1", "b 2"), "a 1\n", False, id="a line too few"),
        pytest.param(("a-… 1 …",), "a-x7 1 5s\n", True, id="dots for what varies"),
        pytest.param(("a …",), "a x\nb\n", False, id="dots end with their line"),
        pytest.param(("…", "done"), "done\n", True, id="dots alone, for no line"),
        pytest.param(("…", "done"), "1\n2\ndone\n", True, id="dots alone, for several lines"),
        pytest.param(("…", "done"), "1\n2\n", False, id="dots alone, and then the wrong line"),
        pytest.param(("(.*)",), "x\n", False, id="nothing but dots is a pattern"),
    ],
)
def test_what_counts_as_told(lines: tuple[str, ...], output: str, is_told: bool) -> None:
    assert Step("kubectl get pods", lines).is_told_by(output) is is_told
