"""The controllers of nodes.

Read `lifecycle` with `health` and `zones`, then `taint_eviction`.
"""
