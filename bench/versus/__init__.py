"""Both schedulers on the same real API server: `python -m bench.versus`.

Reading order: `cluster` (the control plane, and the objects of a workload), `rounds` (what one round measures),
`results` (medians, JSON), `report` (table and plot), `__main__` (the command).
"""
