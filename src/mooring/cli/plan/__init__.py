"""`mooring plan`: what would happen if pods, nodes or requests changed.

command   the options
run       reads the cluster, asks the planner
execute   carries out the moves of a plan
text      the result for people
"""
