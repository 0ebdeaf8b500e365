"""The cluster: the one place that knows everyone, builds them and wires them.

settings     what was asked for
stores       where the objects are kept: memory, a file, etcd
cluster      the control plane in one process
"""
