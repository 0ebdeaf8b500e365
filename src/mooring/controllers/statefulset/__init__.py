"""The StatefulSet controller. Read `controller`, then `plan`, `members` and `pods`."""
