"""The process runtime: containers are commands that run on this machine.

    runtime           implements `kubelet.runtime.Runtime`
    container         one container over all its runs, with hooks and its termination message
    preparation       environment, volumes, directories, limits and user of a run
    directories       pods on disk
    log_files         reads logs
    stale_processes   kills processes of an earlier kubelet
    cgroups           limits of memory and CPU
    shim/             the program beside each container

Users who may create pods run commands as the user of this process: nothing here prevents that.
"""
