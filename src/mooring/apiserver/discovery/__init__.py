"""Discovery: what the server serves, told to clients."""
