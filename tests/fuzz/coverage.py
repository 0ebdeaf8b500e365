"""Coverage-guided fuzzing of one target, with atheris (libFuzzer).

    python -m tests.fuzz.coverage TARGET --seed N --seconds N --findings DIRECTORY

Input: a target, a seed, a time. Output: exit code 0; or 1, and the input of the first finding as a file in the
directory.

 1. A finding is an exception that the target does not expect, a broken invariant, or an input that takes longer than
    `INPUT_CPU_S_MAX`. CPU time counts, so that a busy machine makes no findings.
 2. libFuzzer draws from the seed. How far it comes in the given time depends on the machine.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["mooring"]):
    from tests.fuzz.targets import CORPUS, INPUT_BYTES_MAX, TARGETS, Target

INPUT_CPU_S_MAX = 2.0
"""CPU time of one input, with the instrumentation, which makes the code several times slower. Beyond it: a finding."""
INPUT_HANGS_S = 60
"""Beyond this time libFuzzer ends the process, and the input is a finding."""
RSS_MIB_MAX = 1_024
"""Beyond this size of the process libFuzzer ends it, and the input is a finding."""


class SlowInputError(Exception):
    """An input takes longer than `INPUT_CPU_S_MAX`."""


def run(target: Target, seed: int, seconds: int, findings: Path) -> None:
    """Fuzz for so many seconds. Never returns: libFuzzer ends the process."""
    discovered = tempfile.mkdtemp(prefix=f"{target.name}-corpus-", dir=findings)

    def once(data: bytes) -> None:
        before_s = _cpu_s()
        target(data)
        used_s = _cpu_s() - before_s
        if used_s > INPUT_CPU_S_MAX:
            raise SlowInputError(f"{used_s:.1f} s for {len(data)} bytes")

    options = {
        "seed": seed % (1 << 32) or 1,  # 0 means a random seed to libFuzzer
        "max_total_time": seconds,
        "max_len": INPUT_BYTES_MAX,
        "timeout": INPUT_HANGS_S,
        "rss_limit_mb": RSS_MIB_MAX,
        "dict": target.words,
        "artifact_prefix": f"{findings}/{target.name}-",
        "print_final_stats": 1,
        "verbosity": 1,
    }
    arguments = [f"-{name}={value}" for name, value in options.items()]
    atheris.Setup([sys.argv[0], *arguments, discovered, str(CORPUS / target.name)], once)
    atheris.Fuzz()


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.coverage", description=__doc__.partition("\n")[0])
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--findings", type=Path, required=True)
    given = parser.parse_args()
    given.findings.mkdir(parents=True, exist_ok=True)
    run(TARGETS[given.target], given.seed, given.seconds, given.findings)


if __name__ == "__main__":
    main()
