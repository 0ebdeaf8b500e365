"""The node autoscaler of simulations. It follows Cluster Autoscaler, with its terms and defaults.

In reading order:

    scale_up     which pools can take the unschedulable pods, and which of them grows
    scale_down   which nodes are unneeded
    autoscaler   when nodes are requested and removed, as commands for both levels
"""
