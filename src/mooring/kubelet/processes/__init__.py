"""Real processes: containers as commands that this machine runs.

    runtime        the promise of `kubelet.runtime`, kept with processes
    container      one container over all its runs
    preparation    what it takes to run one: environment, volumes, directories, limits
    identity       as whom it runs, and whom that does not suit
    hooks          what a pod wants done after the start and before the end
    shim           the program beside each container that has its process; shim_log, shim_processes
    shim_client    talking to it
    log_files      reading what was written
    termination    the last words of a container
    directories    where all this is on disk, and whose it is
    leftovers      processes of an earlier life, found and killed
    cgroups        limits of memory and CPU, where they can be set

Whoever may create pods runs commands as our user: nothing here protects from that.
"""
