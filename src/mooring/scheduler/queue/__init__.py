"""The scheduling queue: the pods without a node, and the events that queue a rejected pod again.

Modules in reading order:

    queued_pod      a pod in the queue: its state, its transitions, its rejection, and the status for users
    queueing_hints  the events that plugins register, and what an event means for a rejected pod
    in_flight       pods that are being tried, and the events meanwhile
    unschedulable   unschedulable and gated pods, indexed by the events that can help them
    sub_queues      activeQ, backoffQ and the other sub-queues, and the function that moves a pod
    queue           the decisions: which state a pod goes to
"""
