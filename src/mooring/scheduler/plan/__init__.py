"""Plans: what would happen, computed on the engine without changing anything.

Reading order:

    request      requests and results
    slices       computations that can be suspended
    what_if      changes of the engine that are undone
    new_objects  new nodes, and the pods that replace evicted ones
    place        where pods go, and how many more fit
    drain        removing nodes, emptying nodes, making room for a pod
    add_nodes    how many nodes of which types are missing
    fix          the smallest changes that make a pod fit
    bound        a bound for every placement
    planner      runs a request
    compare      what the cluster would look like with another configuration
"""
