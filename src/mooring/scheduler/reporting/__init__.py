"""What a user sees of the scheduler: conditions, events, metrics."""
