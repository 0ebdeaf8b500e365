"""The environment: with which variables, command and directory a container is started.

    found               what was looked up, where the pod is; what can be wrong with it
    lookup              config maps, secrets and services, through the client
    expansion           `$(VAR)` in texts
    service_variables   where the services are: FOO_SERVICE_HOST, FOO_PORT_80_TCP_ADDR ...
    field_values        what a pod can tell of itself: its labels, its address, its limits
    variables           all of it put together

Everything but `lookup` decides over values.
"""
