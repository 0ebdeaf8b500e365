"""Kubelets: nodes that run the pods that were bound to them, thousands of them in one process.

    kubelets           all kubelets of a process: watches of nodes and pods, workers, writers
    settings           number and size of the nodes; facts about this machine
    node_templates     nodes of several kinds, from a file
    node_state         one node: its pods, resources and addresses; admission of pods
    node_status        Node and Lease objects; heartbeats of all nodes
    pod_worker         one pod on its node, from admission to termination
    pod_actions        the state of each container; which containers to start or to delay
    pod_status         phase, conditions and container statuses
    resize             in-place resize of pods
    status_manager     writes pod statuses; deletes terminated pods
    write_queue        keys to be written, with a limit on requests in flight
    timers             all timers of the kubelets in one heap
    runtime            the interface of a container runtime
    simulated/         a runtime without processes
    processes/         a runtime with processes of this machine; probes/, volumes/, environment, references serve it
    container_logs     the endpoint /containerLogs
    views              pods as hollow nodes, and as the process runtime, decode them

The kubelets import the client and nothing above it.
"""
