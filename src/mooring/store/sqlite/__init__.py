"""The store on disk: everything in memory, and every change in an SQLite file.

In reading order:

    store    the store
    commit   group commit: writes that become durable together
    file     the data directory and the file
    load     reading and checking the file at the start
    memory   the durable contents in memory
    errors   errors and limits
"""
