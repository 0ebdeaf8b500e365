"""Volumes of the process runtime: directories that are mounted into the mount namespace of a container.

    manager           the volumes of all pods
    projected_files   the files of configMap, secret, downwardAPI and projected volumes
    mounts            the mounts of a container

A volume is filled once, before the first container of its pod starts. Later changes of a ConfigMap are seen by later
pods.
"""
