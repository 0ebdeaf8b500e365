"""`mooring up`: a cluster in one command.

command    the options, with nothing imported that `mooring --help` has no use for
settings   the options checked, as settings of a cluster
run        the cluster until Ctrl-C: kubeconfig, banner, objects from files, clones
summary    what was cloned and what was not, in lines for people
"""
