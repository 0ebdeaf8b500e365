"""Admission plugins, one file each: they change or reject objects, depending on other objects of the cluster.

    interface   what a plugin is, the attempt that it gets, and the chain that runs the plugins
    table       the plugins in kube-apiserver's order

Every other module is a plugin. `pod_security_checks` has the checks of the plugin `pod_security`.
"""
