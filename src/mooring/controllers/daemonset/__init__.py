"""The DaemonSet controller. Read `controller`, then `plan` and `nodes` (which nodes fit)."""
