"""The binding cycle: from a believed placement to one that the API server knows, while others are scheduled."""
