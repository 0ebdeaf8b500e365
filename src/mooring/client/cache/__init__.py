"""The cache of a client: reflectors, informers and listers."""
