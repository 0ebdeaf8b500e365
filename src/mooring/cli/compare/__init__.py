"""`mooring compare`: the cluster as other configurations would have filled it, side by side.

command   the options
run       places the pods under each configuration, and shows the result
"""
