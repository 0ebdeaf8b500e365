"""Days of a cluster in seconds: `mooring simulate`.

In reading order:

    errors          what is wrong with an input file, and where
    scenario        the scenario file: cluster, workload, events, policies
    workload        arrivals of pods, their lifetimes, and the pod types
    go_random       the random numbers of Go
    csv_traces      the OpenB and Alibaba DLRM traces
    simkube         SimKube's traces
    sources         the cluster and the workload of a scenario, and the nodes of pools
    gpus            shared GPUs as columns, for plugins
    fragmentation   the GPU fragmentation of a node for typical pods
    measures        what a simulation reports
    policies        configurations and plugins of a policy
    events          what the events of a scenario do, as commands for both levels
    autoscaler      the node autoscaler, as commands for both levels
    budgets         PodDisruptionBudgets, and their status at the engine level
    pending_pods    the queue of the engine level
    engine_level    the engine level: arrivals, departures and events, decided by the engine
    cluster_level   the cluster level: the same with API server, controllers and kubelets on virtual time
    components      the components of the cluster level
    cluster_objects the API objects of the cluster level
    observer        measures a cluster on virtual time
    inputs          the files of a scenario, for workers that do not have them
    simulation      one simulation, at either level: its identity and its stored result
    workers         runs a sweep in worker processes, or on a Dask or Ray cluster
    replay          read the recording of a scheduler, and decide again
"""
