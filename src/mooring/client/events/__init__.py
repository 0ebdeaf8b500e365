"""Events: what happened to an object, for people to read. One recorder and one writer, two formats.

In reading order:

    recorder   the interface for components; limits and names
    writer     aggregates events and writes them in the background: events.k8s.io/v1 for the scheduler,
               core/v1 for controllers and kubelets
"""
