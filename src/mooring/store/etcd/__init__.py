"""The store on etcd, laid out as kube-apiserver does.

In reading order:

    store       the store, its watches, compaction
    mirror      the contents of etcd in memory, kept up to date by one watch
    wire        calls and event streams of one endpoint; the choice of an endpoint, retries
    settings    the address and the limits
    errors      errors
"""
