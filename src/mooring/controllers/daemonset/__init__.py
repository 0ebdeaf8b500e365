"""The DaemonSet controller. Read `controller`, then `plan`, `nodes` (which nodes fit) and `history`."""
