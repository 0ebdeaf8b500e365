"""The controllers: they make what is there into what is wanted, one object at a time.

frame          what every controller is given, and what it has to be
manager        starts them together, on one set of informers
table          which controllers there are
settings       their periods and numbers of workers, by the names of kube-controller-manager's flags
expectations   what was asked of the API and has not been seen yet
adoption       whose a pod is: adopted and released by selector
pod_control    creating and deleting pods, in batches that grow, with events
documents      whole objects, to be changed and written back

A controller is a file that decides (`…_plan.py`: plain functions over views, no I/O) and one that acts.
"""
