"""Event handlers: apply watch events to the columns and pass cluster events to the queue.

Modules in reading order:

    objects  nodes and the other kinds that plugins read; objects that cannot be parsed
    pods     pods: pending ones to the queue, assigned ones to the columns
"""
