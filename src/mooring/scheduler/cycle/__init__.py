"""One decision about one pod.

The modules in reading order:

  schedule_pod  the scheduling cycle: filter, score, select, or diagnose and run PostFilter
  filter_nodes  PreFilter, Filter and sampling
  scoring       PreScore and Score; the scores of the best nodes
  attempt       the results of one attempt, its diagnosis, and dry runs of the filters
  result_cache  the results of plugins by signature and row
  decision      the result of a cycle
  explain       all obstacles of all nodes, for `mooring explain`
"""
