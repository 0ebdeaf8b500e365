"""The scheduling framework.

The modules in reading order:

  plugin        the extension points
  status        Status, Diagnosis, FitError
  post_filter   what PostFilter plugins read and return
  events        cluster events and queueing hints
  obstacle      explanations of rejections
  node_plugins  the interface for users' plugins; adapter, guard: how the framework calls them
  loading       plugins from files and packages
  registry      plugin classes by name; profile: the plugins of a profile
  waiting_pods  pods that wait for Permit
"""
