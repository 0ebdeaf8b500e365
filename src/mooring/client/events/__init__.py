"""Events: what happened to an object, for people to read. One recorder and one writer, two formats.

kube-scheduler writes events.k8s.io/v1 Events, controllers and kubelets write core/v1 Events. The APIs aggregate
differently: a series leaves out the note, a core Event counts equal messages.

In reading order:

    recorder   the interface for components; names, limits
    writer     writes pending events in the background, with retries
    series     events.k8s.io/v1: series of events
    core       core/v1: counted and combined events
"""
