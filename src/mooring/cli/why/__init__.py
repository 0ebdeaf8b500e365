"""`mooring why` and `mooring queue`: ask the running scheduler about its attempts and its queue.

command   the options
scheduler_client   reads the pages of the scheduler
text      the answers for people
"""
