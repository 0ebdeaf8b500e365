"""`mooring console`: the web console for a cluster with another scheduler.

command   the options
run       reads the cluster, then serves the console until Ctrl-C
"""
