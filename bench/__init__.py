"""Benchmarks: how fast pods are scheduled and bound, on named workloads, with every result checked.

`python -m bench` (or `make bench`) runs everything; `python -m bench plain --nodes 1000` runs one workload. Start with
`workloads/plain.yaml`, `workload.py`, `scenario.py` and `runner.py`; for the running scheduler with
`workloads/loop-plain.yaml` and `live.py`.
"""
