"""Devices: what drivers publish, who has what of it, and how claims are matched with it.

Read in this order:

    pools        slices become pools, as one node sees them
    inventory    which pools each row of the columns sees
    claims       claims as they are believed: stored, assumed, in flight
    usage        which devices are taken, and how much of those that are shared
    ledger       the four together, once for a cluster: what plugins hold
    requests     what a pod's claims ask for, compiled
    selection, capacity, constraints      the rules for one device
    search       the first way to satisfy all requests on one row; given up at its deadline
    answers      what the search says of every row, kept while nothing changes
    results      an allocation as the API server is told
    extended     resources of pods behind which a device class stands
"""
