"""OpenAPI: the shapes of all kinds and the paths at which they are served, written for clients."""
