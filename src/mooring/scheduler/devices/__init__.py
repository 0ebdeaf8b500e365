"""Dynamic resource allocation: the devices that drivers publish, and their allocation to ResourceClaims.

The modules in reading order:

  pools               ResourceSlices as pools of devices, and consumable capacity
  inventory           which pools each node sees
  claims              ResourceClaims as stored, assumed or pending, and the devices allocated to them
  dra_manager         the state of all devices, shared by the plugins of all profiles
  requests            what claims request, and whether a device satisfies a request
  allocator           the first allocation on one node that satisfies all requests of a pod
  allocation_cache    the allocator's outcome for each node, cached until devices change
  results             an allocation as it is written to the claim's status
  extended_resources  extended resources of pods that a DeviceClass provides
"""
