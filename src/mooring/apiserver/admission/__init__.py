"""Admission plugins, one file each: they change or reject objects, depending on other objects of the cluster."""
