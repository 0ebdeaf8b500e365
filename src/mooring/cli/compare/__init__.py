"""`mooring compare`: the cluster as other configurations would have filled it, side by side.

command   the options
run       places the pods under each configuration
report    the table, JSON, and a plot
"""
