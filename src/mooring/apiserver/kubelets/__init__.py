"""The way to kubelets that are not in this process: where they are, and what they have to tell.

location   the address of a log        logs   the log itself        words   what can go wrong on the way
"""
