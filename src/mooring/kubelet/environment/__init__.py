"""The environment of a container of the process runtime: variables, command and directory.

    references     ConfigMaps, Secrets, Services and volumes that a pod refers to
    downward_api   values of fields and resources of the pod itself
    variables      all variables, `$(VAR)` expansion, Service variables

`references` reads through the client. The others are pure functions.
"""
