"""Both schedulers on the same real API server: `python -m bench.versus`.

Reading order: `servers` (the control plane), `cluster` (the objects of a workload), `rounds` (what one round measures),
`results` (medians, JSON), `report` (table and plot), `__main__` (the command).
"""
