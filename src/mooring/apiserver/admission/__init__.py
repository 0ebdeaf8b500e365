"""Admission: what the cluster adds to objects, and forbids, beyond what is wrong in themselves. One file a plugin."""
