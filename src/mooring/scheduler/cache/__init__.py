"""The columns: the scheduler's cache of nodes and pods, with one row for each node and one array for each property.

The modules in reading order:

  columns          the columns and their only writer; transactions, which are rolled back
  arrays           array types, growth, and the log of changed rows
  pods             pods, their signatures, and nominated pods
  resources        allocatable and used amounts; host ports in use
  nodes            node labels, node selectors, taints and images
  selectors        counts of pods by label selector, and affinity terms of placed pods
  volumes          claims, disks and CSI volumes in use; attachments: volumes attached to nodes, and their limits
  objects          all other objects
  node_order       the order in which kube-scheduler evaluates nodes
"""
