"""The scheduling queue: where a pod waits until it is its turn, and what wakes it.

Read in this order:

    moves        the rooms, and which moves between them there are
    entry        a pod in the queue, and what is known of it
    gates        may it enter? (PreEnqueue)
    backoff      how long it stays away after an attempt, and in which order pods come back
    hearing      which plugin hears which event, and what its hint says
    sleepers     those who sleep, found by what can wake them
    in_flight    those under way, and what they must be told when they come back
    rooms        all of them, and the one way between them
    queue        what becomes of a pod: the decisions
"""
