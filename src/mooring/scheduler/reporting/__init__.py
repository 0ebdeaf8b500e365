"""Reports of the scheduler: events, pod conditions, metrics, recent decisions."""
