"""The client over HTTP: for any Kubernetes API server, and for other servers that components call."""
