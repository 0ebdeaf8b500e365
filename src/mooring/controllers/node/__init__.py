"""The controllers of nodes.

Read `lifecycle` with `health`, `taints` and `zones`, then `taint_eviction`.
"""
