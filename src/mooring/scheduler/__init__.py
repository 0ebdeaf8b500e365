"""The scheduler: which node takes a pod, decided on columns, exactly as kube-scheduler v1.36 does.

The floor has five rooms, in the order a pod walks through them:

  config      what the operator asked for: profiles, plugins, arguments
  cache       what the scheduler believes of the cluster: the columns
  framework   the extension points a plugin can serve, and the registry that rejects bad ones
  plugins     one file for each reason why a node cannot or should not take a pod
  cycle       one decision: filter, score, select, and what to say when nothing fits
"""
