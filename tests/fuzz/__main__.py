"""`make fuzz`: bad requests, requests of the OpenAPI documents, and mutated inputs of the parsers, for a bounded time.

    python -m tests.fuzz [--seed N] [--seconds N] [--findings DIRECTORY] [--only PART ...]
    python -m tests.fuzz --repeat TARGET FILE

Output: progress lines and a summary; exit code 1 if something was found, with the file of each input and the command
that repeats it.

The parts, and their shares of the time: `requests` (recorded requests, spoiled), `openapi` (schemathesis), and each
target of `targets.py` (atheris). Each part runs in a process of its own, so that a crash of the interpreter is a
finding, too.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mooring.kit.clock import SystemClock
from mooring.kit.entropy import system_entropy
from tests.fuzz.targets import CORPUS, TARGETS

SECONDS = 600
"""The default time of a run."""
START_S = 5.0
"""What it takes to start a part; more on a busy machine, and then the later parts have less time."""
OVERTIME_S_MAX = 90.0
"""For the start of a part, and the input that it works on when its time ends. Beyond it the part is killed, which is a
finding."""
REQUESTS, OPENAPI = "requests", "openapi"
WEIGHTS: Mapping[str, float] = {REQUESTS: 2.0, OPENAPI: 3.0, **dict.fromkeys(TARGETS, 1.0)}
SHOWN_LINES = 25
_NOISE = ("INFO: ", "WARNING: Failed to find function", "###", "stat::new_units", "stat::average", "MS: ", "0x", '"')


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a run."""

    name: str
    seconds: int
    command: Sequence[str]
    """The command of the part. With the same seed it sends the same inputs."""


@dataclass(frozen=True, slots=True)
class Result:
    part: Part
    took_s: float
    summary: str
    is_clean: bool
    output: str
    inputs: Sequence[Path]


def share_s(names: Sequence[str], left_s: float) -> int:
    """The time of the first of the parts that are left, without what it takes to start."""
    share = left_s * WEIGHTS[names[0]] / sum(WEIGHTS[name] for name in names)
    return max(1, int(share - START_S))


def part_of(name: str, seed: int, seconds: int, findings: Path) -> Part:
    module = {REQUESTS: "tests.apiserver.http.fuzzer", OPENAPI: "tests.fuzz.openapi"}.get(name, "tests.fuzz.coverage")
    options = ["--seed", str(seed), "--seconds", str(seconds), "--findings", str(findings)]
    return Part(name, seconds, ["-m", module, *([name] if name in TARGETS else []), *options])


def run_part(part: Part, findings: Path) -> Result:
    """Run one part to its end."""
    clock = SystemClock()
    before_s, known = clock.now_s(), set(_inputs(findings))
    log = findings / f"{part.name}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, *part.command], stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code = process.wait(part.seconds + OVERTIME_S_MAX)
        except subprocess.TimeoutExpired:
            code = -signal.SIGKILL
        finally:
            _end(process)
    output = log.read_text(encoding="utf-8", errors="replace")
    inputs = [file for file in _inputs(findings) if file not in known]
    return Result(part, clock.now_s() - before_s, _summary(output), code == 0 and not inputs, output, inputs)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a part and its servers, which are in its process group."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _inputs(findings: Path) -> list[Path]:
    return sorted(file for file in findings.iterdir() if file.is_file() and file.suffix in ("", ".json"))


def _summary(output: str) -> str:
    """The line with the number of inputs."""
    lines = [
        line for line in output.splitlines() if line.startswith(("Done ", "seed ")) or " operations, answered" in line
    ]
    return lines[-1] if lines else "no summary"


def _explain(result: Result, findings: Path) -> None:
    print(f"\n{result.part.name}: FOUND")
    lines = [
        line for line in result.output.splitlines() if line.strip() and not line.startswith(_NOISE) and line[0] != "#"
    ]
    for line in lines[-SHOWN_LINES:]:
        print(f"    {line[:300]}")
    for file in result.inputs:
        print(f"    input: {file}")
        if result.part.name in TARGETS:
            print(f"    repeat: .venv/bin/python -m tests.fuzz --repeat {result.part.name} {file}")
            print(f"    keep: copy it to {CORPUS.relative_to(Path.cwd())}/{result.part.name}/ when it is fixed")
        elif result.part.name == OPENAPI:
            print(f"    repeat: .venv/bin/python -m tests.fuzz.openapi --repeat {file}")
    print(f"    repeat the part: .venv/bin/python {' '.join(result.part.command)}")
    print(f"    log: {findings / result.part.name}.log")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("--findings", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--only", nargs="*", choices=sorted(WEIGHTS), default=sorted(WEIGHTS, key=list(WEIGHTS).index))
    parser.add_argument("--repeat", nargs=2, metavar=("TARGET", "FILE"), help="feed one input to a target")
    given = parser.parse_args()
    if given.repeat is not None:
        TARGETS[given.repeat[0]](Path(given.repeat[1]).read_bytes())
        print(f"{given.repeat[1]}: read or rejected")
        return 0
    seed = system_entropy().seed % (1 << 31) if given.seed is None else given.seed
    given.findings.mkdir(parents=True, exist_ok=True)
    clock = SystemClock()
    began_s = clock.now_s()
    print(f"fuzz: seed {seed}, {len(given.only)} parts in {given.seconds} s", flush=True)
    results = []
    for number, name in enumerate(given.only):
        left_s = began_s + given.seconds - clock.now_s()
        part = part_of(name, seed, share_s(given.only[number:], left_s), given.findings)
        print(f"fuzz: {number + 1}/{len(given.only)} {part.name}, {part.seconds} s ...", flush=True)
        result = run_part(part, given.findings)
        results.append(result)
        print(f"fuzz: {part.name}: {'clean' if result.is_clean else 'FOUND'}, {result.summary}", flush=True)
    found = [result for result in results if not result.is_clean]
    for result in found:
        _explain(result, given.findings)
    outcome = f"findings in {', '.join(result.part.name for result in found)}" if found else "nothing found"
    print(f"fuzz: seed {seed}, {clock.now_s() - began_s:.0f} s: {outcome}")
    return 1 if found else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("fuzz: interrupted")
