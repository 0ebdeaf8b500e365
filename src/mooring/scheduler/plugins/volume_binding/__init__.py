"""VolumeBinding: place a pod where its PersistentVolumeClaims are bound or can be bound.

The modules in reading order:

  plugin        the plugin at its extension points, and its queueing hints
  conflicts     which nodes the claims of a pod rule out, and why
  matching      which free PersistentVolume each claim gets on each node
  provisioning  where a volume can be provisioned for a claim
  topology      which nodes a volume, a storage class or a storage capacity can be used from
  binder        writes the volumes and claims of a pod, and waits until they are bound
"""
