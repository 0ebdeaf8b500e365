"""The scheduler: assigns pods to nodes, with the decisions of kube-scheduler v1.36, computed on columns.

Packages and modules, from the lowest layer to the highest (`pyproject.toml` has the whole contract):

  config, cache     the configuration; the cluster as columns
  framework         extension points, plugin registry, profiles
  plugins, policy   the built-in plugins; the plugins and the format of the older Policy
  cycle, engine     one decision: filter, score, select, or diagnose and preempt
  queue             activeQ, backoffQ, unschedulable pods, in-flight events
  extenders         the cycle with extenders over HTTP
  binding           the binding cycle and assumed pods
  event_handlers    apply watch events to the columns and the queue
  loop, eviction    the scheduling loop; the eviction of victims
  scheduler         wires the components and runs them
  plan              what would happen: pods to place, nodes to remove or add, fixes
  console           the data of the web console
"""
