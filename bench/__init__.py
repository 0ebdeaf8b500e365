"""The benchmarks: how fast pods are decided and bound, on named workloads, with every answer checked.

`python -m bench` (or `make bench`) runs everything; `python -m bench plain --nodes 1000` runs one thing.
Start reading at `workloads/plain.yaml`, then `workload.py`, `scenario.py`, `runner.py`; through the running scheduler,
at `workloads/loop-plain.yaml` and `live.py`.
"""
