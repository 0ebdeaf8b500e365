"""The cluster that `explain`, `plan`, `compare` and `why` ask about: from files, from an API server, or from both.

In reading order:

  assemble        reads the cluster, builds an engine for it, and finds pods by name
  live            reads a cluster from its API server
  cluster_input   completes the input with what an API server and its controllers would have added
  admission       creates objects with the defaulting and admission of the API server
  workloads       the pods that controllers would create
"""
