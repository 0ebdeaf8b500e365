"""Leader election: one of several processes works, by a Lease."""
