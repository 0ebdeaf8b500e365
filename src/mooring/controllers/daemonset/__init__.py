"""The DaemonSet controller. Read `controller`, then `plan`."""
