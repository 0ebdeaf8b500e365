"""The process runtime: containers are commands that run on this machine.

    runtime           implements `kubelet.runtime.Runtime`
    container         one container over all its runs, with hooks and its termination message
    preparation       identity, environment, volumes, directories and limits of a run
    security_context  the user, groups and capabilities of a container; ranges of user ids of pods
    sandboxes         what this machine allows, and the sandbox of each container
    directories       pods on disk
    log_files         reads logs
    stale_processes   kills processes of an earlier kubelet
    cgroups           limits of memory and CPU
    shim/             the program beside each container

As root, pods run as users of their own. Otherwise users who may create pods run commands as the user of this process.
"""
