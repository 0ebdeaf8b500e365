"""Kubeconfig files: from files, contexts and plug-ins to a `Connection`.

In reading order:

    entries     the entries of kubeconfig files, and their merge
    load        the connection of a context, found as kubectl or kube-scheduler find it, or of a pod's service account
    exec        exec credential plug-ins
"""
