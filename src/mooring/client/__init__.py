"""The client: the only way to the API, and shared code on top of it.

In reading order:

    interface     the protocol of a client: reads, writes, watches
    errors        errors of the API
    batch_writes  many similar objects with one call
    http          the client over HTTP
    kubeconfig    connections from kubeconfig files
    reflector     lists and watches one kind
    informer      caches, indexes and event handlers on a reflector
    workqueue     the work queue of a controller
    ratelimit     token buckets
    events        writes events
    election      leader election with a Lease
"""
