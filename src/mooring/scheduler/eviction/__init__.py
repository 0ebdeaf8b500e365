"""Eviction: the victims of preemption leave their node."""
