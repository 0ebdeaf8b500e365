"""Clusters and standalone components: the only package that constructs components and connects them.

In reading order:

    settings             settings of a cluster
    cluster              a cluster in this process: store, API server, and what runs with it
    components           scheduler, controllers and nodes of a cluster
    control_plane        the scheduler and the controllers, which need only a client
    component_client     loopback clients of components
    component_pages      pages of the components that the API server serves
    console_pods         the pods of a manifest, for the console
    worker               the worker process, for the control plane of a large cluster
    worker_messages      messages to the worker process
    worker_process       its main module
    nodes                nodes that run pods as processes of this machine
    kubernetes_service   the Service `kubernetes` and the authority of client certificates
    objects              creates objects of any served kind
    workload_progress    when workloads are available, and why they are not
    clone                clones a cluster from a dump, before the components start

    scheduler_process    a standalone scheduler
    scheduler_pages      the pages of its secure port
    console_pages        those of them about the console's source, its past and its pause
    observer             decides for the console what another scheduler decides in the cluster
    secure_port          the secure port of a component
    standalone           standalone controllers and nodes
"""
