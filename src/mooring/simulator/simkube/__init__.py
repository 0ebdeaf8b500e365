"""SimKube's traces (`.sktrace`, version 2): objects that were applied and deleted.

In reading order:

    trace   the file: its events, and the life cycles of pods
    pods    the pods of its objects, for the engine level
"""
