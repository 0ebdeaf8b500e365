"""The scheduling queue: the pods without a node, and the events that queue a rejected pod again.

Modules in reading order:

    states          the states of a pod in the queue, and the transitions between them
    in_flight       pods that were popped, and the events to replay when they are requeued
    queueing_hints  the events that plugins register, and what an event means for a rejected pod
    queued_pod      a pod in the queue, the pods that the same plugins rejected, and the status for users
    unschedulable   unschedulable and gated pods, indexed by the plugins that rejected them
    sub_queues      activeQ, backoffQ, unschedulable pods and in-flight pods, and the function that moves a pod
    queue           the decisions: which state a pod goes to
"""
