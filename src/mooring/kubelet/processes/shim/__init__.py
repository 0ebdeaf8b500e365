"""The shim: a small program that runs beside each container and owns its process.

    client            starts a shim and talks to it, from the kubelet's side
    program           the shim itself
    log               the log files that the shim writes
    linux             processes: fork, prctl, /proc
    sandbox           namespaces, mounts, user and capabilities of a process

All but `client` import the standard library only: there is one shim for each container.
"""
