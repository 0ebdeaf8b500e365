"""The Job controller. Read `controller`, then `plan`, `status`, `pods`, `failures` and `indexes`."""
