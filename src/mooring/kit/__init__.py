"""The kit: time, chance, waiting and order, which every floor above stands on.

    clock     what time it is, and waiting for later
    entropy   the only source of chance, from one seed
    loop      an event loop on virtual time, which jumps to the next alarm
    tasks     named groups of tasks that lose no exception
    worker_pool  jobs in a task group, a limited number at a time
    heap      a heap whose items have names
    backoff   how long to wait after a failure
    host_address  the address of this machine
    temporary_directory  directories that do not outlive their process

1. The kit knows nothing of Kubernetes and imports nothing of the house.
2. It is the only place that may touch the real clock and the real dice; ruff's table of bans holds it for the rest.
"""
