"""One decision: which nodes can take a pod, which is best, and what to say when none can."""
