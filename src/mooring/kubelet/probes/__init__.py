"""Probes: asking containers whether they are alive, ready, and started.

    health      what follows from the answers: thresholds, and which probe waits for which
    keeper      when to ask, for all containers; who is told
    answers     what can be answered
    asking      which way to ask; ports by name
    commands    by a command beside the container
    http        by a request
    sockets     by a connection
    grpc        by gRPC's own health check

`health` decides over values, `keeper` on the clock that it is given; the others do what they are told.
"""
