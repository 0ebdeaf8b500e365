"""The benchmarks: how fast the engine decides, on named workloads, with every answer checked.

`python -m bench` (or `make bench`) runs everything; `python -m bench plain --nodes 1000` runs one thing.
Start reading at `workloads/plain.yaml`, then `workload.py`, `scenario.py`, `runner.py`.
"""
