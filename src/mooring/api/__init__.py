"""Rules about objects: what the API's words mean, for every part that reads them.

Comes in   objects as JSON, and the values inside of them (quantities, selectors, taints, requests)
Goes out   typed read views (`views/`), and functions that answer questions about them

 1. Nothing here knows a cluster: each rule is about one object, or about two that are put side by side.
 2. Nothing here waits, draws lots, or looks at a clock.
"""
