"""One file for each reason why a node cannot, or should not, take a pod."""
