"""The cluster: the one place that knows everyone, builds them and wires them.

settings     what was asked for
stores       where the objects are kept: memory, a file, etcd
cluster      the control plane in one process
components   what runs beside the API server in it
ways_in      how they reach it
announcement   what the API server writes about itself

scheduler_process   the scheduler alone, against an API server somewhere else
scheduler_pages     what it shows on its secure port
secure_port         a component's secure port, opened
"""
