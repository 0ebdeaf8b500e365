"""Caches of API objects, as client-go's tools/cache.

In reading order:

    reflector   list and watch one kind into a sink
    informer    a sink with a cache, indexes and event handlers; its lister; the informers of a process
"""
