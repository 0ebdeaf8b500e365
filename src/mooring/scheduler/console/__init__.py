"""The data of the web console.

data        the data of all requests of the console; the overview and its history
history     samples of the cluster, for the page Time
reuse       answers that are used again for a while
queue       a window of the sorted and filtered queue
nodes       columns of all nodes for the map; one node in detail
pods        the timeline of a pod, its nearest nodes, and where it could preempt; the pods of each controller by state
"""
