"""Dynamic resource allocation: the devices that drivers publish, and their allocation to ResourceClaims.

The modules in reading order:

  pools               ResourceSlices as pools of devices, and consumable capacity
  claims              ResourceClaims and the devices allocated to them; claims for extended resources
  dra_manager         the state of all devices, shared by the plugins of all profiles; which pools each node sees
  requests            what claims request, and whether a device satisfies a request
  allocator           the first allocation on one node that satisfies all requests of a pod
  allocation_cache    the allocator's outcome for each node, cached until devices change
"""
