"""VolumeBinding: place a pod where its PersistentVolumeClaims are bound or can be bound.

The modules in reading order:

  plugin     the plugin at its extension points, and its queueing hints
  conflicts  which nodes the claims of a pod rule out, and why
  matching   which free PersistentVolume each claim gets on each node
  topology   where a volume can be used or provisioned
  binder     writes the volumes and claims of a pod, and waits until they are bound
"""
