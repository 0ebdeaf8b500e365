"""The StatefulSet controller. Read `controller`, then `plan`, `members`, `pods` and `history`."""
