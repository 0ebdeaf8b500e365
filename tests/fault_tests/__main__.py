"""Replay a seed by hand: `python -m tests.fault_tests SEED`; or a range: `python -m tests.fault_tests FIRST LAST`."""

from __future__ import annotations

import sys

from tests.fault_tests.run import run_seeds


def main() -> int:
    first, last = int(sys.argv[1]), int(sys.argv[-1])
    bad = 0
    for outcome in run_seeds(range(first, last + 1)):
        bad += not outcome.is_good
        if first == last or not outcome.is_good:
            print(outcome, flush=True)
        if first == last:
            print(*outcome.actions, sep="\n")
    print(f"{last - first + 1 - bad} of {last - first + 1} seeds are good")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
