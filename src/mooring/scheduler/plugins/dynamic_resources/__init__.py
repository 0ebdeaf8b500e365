"""DynamicResources: allocate devices to the ResourceClaims of a pod.

The modules in reading order:

  plugin  the plugin at its extension points, its queueing hints and its explanations
  claims  the ResourceClaims of a pod, and whether their devices are ready
  state   what one scheduling cycle knows of a pod's claims on each node
  binder  writes allocations and reservations to the API server, and waits for devices
"""
