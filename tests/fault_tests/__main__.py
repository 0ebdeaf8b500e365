"""Replay a seed by hand: `python -m tests.simulation SEED`; or a range: `python -m tests.simulation FIRST LAST`."""

from __future__ import annotations

import sys

from tests.simulation.simulate import simulate_all


def main() -> int:
    first, last = int(sys.argv[1]), int(sys.argv[-1])
    bad = 0
    for outcome in simulate_all(range(first, last + 1)):
        bad += not outcome.is_good
        if first == last or not outcome.is_good:
            print(outcome, flush=True)
        if first == last:
            print(*outcome.wishes, sep="\n")
    print(f"{last - first + 1 - bad} of {last - first + 1} seeds are good")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
