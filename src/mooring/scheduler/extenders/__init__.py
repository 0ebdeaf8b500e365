"""Extenders: HTTP services of somebody else's that have a say in filtering, scoring, preempting and binding."""
