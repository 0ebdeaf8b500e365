"""Kubeconfig files: from a file, its contexts and plug-ins, to a `Connection`."""
