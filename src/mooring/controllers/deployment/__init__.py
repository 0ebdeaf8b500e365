"""The Deployment controller. Read `controller`, then `sizes`, `history` and `status`."""
