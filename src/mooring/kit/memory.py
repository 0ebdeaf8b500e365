"""Memory: telling the garbage collector what need not be looked at again.

Comes in   nothing: whoever has just loaded a cluster calls `settle_memory`; whoever starts a process works in `loading`
Goes out   shorter pauses

A scheduler holds a picture of the cluster: hundreds of thousands of small objects that live as long as their pods.
Python's collector walks all of them again and again, and with 10,000 different pods a full walk takes half a second,
in the middle of some pod's decision. None of them is garbage: what goes is freed by its count.

 1. Objects that live when `settle_memory` is called are never walked again.
 2. Those made later are walked, but seldom: a new pod makes a few hundred objects and hardly any cycle. Each tenth walk
    is over all that came since the last such one, half a million objects: a pause of 0.14 to 0.3 s, once for some
    6,000 pods that are started. In smaller portions all would be walked twice.
 3. While a program is read in nothing is collected: what modules make stays, and walking it again and again takes a
    sixth of the start.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

NEW_OBJECTS_BEFORE_COLLECTING = 50_000


@contextmanager
def loading() -> Iterator[None]:
    """Collect nothing until `end_loading`, or until the block is left."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def end_loading() -> None:
    """Leave what is there alone from then on, and collect seldom. What is garbage by now is hardly worth a walk."""
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS_BEFORE_COLLECTING, *gc.get_threshold()[1:])
    gc.enable()


def settle_memory() -> None:
    """Call it after a load: collects once, leaves what is left alone from then on, and collects seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS_BEFORE_COLLECTING, *gc.get_threshold()[1:])
