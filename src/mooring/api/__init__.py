"""The meaning of API objects: views of them, and the rules that several components share.

Input: objects as JSON, and values in them (quantities, selectors, taints, requests). Output: typed read-only views
(`views/`), and functions over views and values.

 1. A rule is about one object or about two. No function here needs a cluster.
 2. Nothing here waits, reads a clock, or draws random numbers.
"""
