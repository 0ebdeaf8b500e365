"""The client: the only way to the API, and everything that is built on it once for all parts."""
