"""The store: a numbered history of keys and values.

interface   the protocol of all stores, and their errors
memory      the store in memory; the others keep what they read in one
sqlite      the store on disk
etcd        the store on etcd
"""
