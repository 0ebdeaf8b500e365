"""Volumes of real pods: made as directories, and shown to processes where the pod wants them.

    files           what config maps, secrets, fields and tokens put into a volume
    writing         files and directories on disk
    keeper          the volumes of all pods
    mounts          what a container wants to see where
    ability         whether we can show it there
    entry_command   the command that does so, then becomes the container's
    entry           what that command runs

A volume is filled once, before its pod's first container starts. What changes in a config map later is seen by pods
that are made later.
"""
