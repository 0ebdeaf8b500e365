"""`mooring up`: a cluster in one command.

command    the options, with the imports of `mooring --help` only
shapes     what hollow nodes are like
settings   the options as settings of a cluster
run        runs the cluster until Ctrl-C
"""
