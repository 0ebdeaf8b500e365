"""Leader election: of several processes with the same task, one leads at a time, by a Lease.

In reading order:

    elector   the state machine of one candidate
    record    the election record in a Lease
"""
