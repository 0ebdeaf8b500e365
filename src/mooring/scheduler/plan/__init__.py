"""Plans: what would happen, asked of the engine without changing anything.

Reading order:

    request      what is asked, and the answer
    slices       computations that give way
    what_if      changes of the engine that are undone
    place        where pods go
    drain        what the removal of nodes does
    new_nodes    a node like another one
    add_nodes    how many nodes of which types are missing
    fix          the smallest changes that make a pod fit
    capacity     how many more pods fit
    defragment   moves that empty nodes, or make room for a pod
    bound        what no placement can beat
    planner      runs a request
"""
