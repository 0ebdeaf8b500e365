"""Memory: telling the garbage collector what need not be looked at again.

Comes in   nothing: whoever has just loaded a cluster calls `settle_memory`
Goes out   shorter pauses

A scheduler holds a picture of the cluster: hundreds of thousands of small objects that live as long as their pods.
Python's collector walks all of them again and again, and with 10,000 different pods a full walk takes half a second,
in the middle of some pod's decision. None of them is garbage: what goes is freed by its count.

 1. Objects that live when `settle_memory` is called are never walked again.
 2. Those made later are walked, but seldom: a new pod makes a few hundred objects and hardly any cycle.
"""

import gc

NEW_OBJECTS_BEFORE_COLLECTING = 50_000


def settle_memory() -> None:
    """Call it after a load: collects once, leaves what is left alone from then on, and collects seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS_BEFORE_COLLECTING, *gc.get_threshold()[1:])
