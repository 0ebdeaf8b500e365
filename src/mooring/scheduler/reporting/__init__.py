"""Reports of the scheduler about its pods.

The modules in reading order:

  reports           one method for each fact; calls the others; conditions and nominated nodes of pods
  metrics           metrics under kube-scheduler's names
  decision_records  the last decisions; nearest_misses: what was missing on the nearest nodes
  decision_log      decision records in a file, for `mooring why`
  recording         what the scheduler sees and does in a file, for `mooring simulate --replay`
"""
