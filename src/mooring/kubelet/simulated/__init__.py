"""Simulated containers: a container runs through the stages of a stage set, without any process.

stages       stage sets as data
commands     the stage sets of commands that are known, such as `sleep 5`
stage_file   the YAML format, the built-in stage sets, and the stage set of a container
runtime      the implementation of `kubelet.runtime.Runtime`
"""
