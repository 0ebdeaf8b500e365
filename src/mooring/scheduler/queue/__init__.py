"""The scheduling queue: the pods without a node, and the events that queue a rejected pod again.

Modules in reading order:

    queued_pod      a pod in the queue: its state, its transitions, its rejection, and the status for users
    queueing_hints  the events that plugins register, and what an event means for a rejected pod
    sub_queues      activeQ, backoffQ, unschedulable and in-flight pods, and the function that moves a pod
    queue           the decisions: which state a pod goes to
"""
