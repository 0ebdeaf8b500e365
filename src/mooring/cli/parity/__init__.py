"""`mooring parity`: our decisions beside those of a kube-scheduler binary, pod by pod.

command          the options
run              loads a cluster into an API server of its own, lets both decide, and shows or records the outcome
kube_scheduler   the binary: its configuration, its process, and the scores that it logs
compare          one pod: what both decided, and where they differ
generate         random clusters that use every plugin
"""
