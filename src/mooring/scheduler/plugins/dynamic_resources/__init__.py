"""DynamicResources: allocate devices to the ResourceClaims of a pod.

The modules in reading order:

  plugin  the plugin at its extension points, its queueing hints and its explanations
  state   the ResourceClaims of a pod, and what one scheduling cycle knows of them on each node
  binder  writes allocations and reservations to the API server, and waits for devices
"""
