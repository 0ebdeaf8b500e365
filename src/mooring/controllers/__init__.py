"""The controllers bring the objects of a cluster closer to their desired state.

Read in this order:

    context            `ControllerContext` and `Controller`: what a controller gets and what it implements
    owner_controller   base classes of controllers whose objects own others; keep, adopt or release these
    expectations       requests that the informers do not show yet
    pod_control        create and delete pods, with events
    documents, pods, pod_indexes, revisions, served_kinds                                      shared helpers
    replicaset, deployment, statefulset, daemonset, job, cronjob, ttl_after_finished           workloads
    node, podgc        nodes and their pods
    volume, resourceclaim, endpoint, disruption, quota      storage, devices, services, budgets, quotas
    garbagecollector, namespace, serviceaccount, clusterrole_aggregation                       housekeeping
    settings, manager          flags; the list of controllers, and the manager that runs them

A controller decides in plain functions over views without I/O (modules `plan`, `sizes`, `status`, …) and acts in
its `Controller` class.
"""
