"""The kubelets: nodes that carry out what the scheduler decided, thousands of them in one process.

    fleet          the rooms, wired: what comes from the API, and who hears of it
    settings       how many nodes, and of which sort
    nodes          one node: its pods, its addresses, what is taken of it
    heartbeats     leases and statuses of all nodes, spread over time
    worker         one pod on its node, from the first sight to its end
    plan           what to start next, what to wait for
    admission      who is turned away, and in which words
    statuses       what is told of a pod; containers and conditions
    runtime        who really has the containers, as a promise
    simulated      the promise kept without any process: a life is data (lives, lives_file, lives_builtin)
    outbox         what is to be written, so many at a time

The kubelets know the client and nobody above it.
"""
