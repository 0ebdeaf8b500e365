"""The cluster: the one place that knows everyone, builds them and wires them.

settings     what was asked for
stores       where the objects are kept: memory, a file, etcd
cluster      the control plane
components   what runs beside the API server
parts        the scheduler and the controllers, which need nothing but a client
beside       a second process for them, where the cluster is large
beside_process   what that process does
ways_in      how they reach it
announcement   what the API server writes about itself: the Service `kubernetes`, its endpoints, its authority
objects      creates objects of any served kind
clone        clones a cluster from a dump, before the components start

scheduler_process   the scheduler alone, against an API server somewhere else
scheduler_pages     what it shows on its secure port
secure_port         a component's secure port, opened
"""
