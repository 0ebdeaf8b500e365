"""Simulated containers: a container runs through the stages of a stage set, without any process.

stages       stage sets as data
commands     the stage sets of commands that are known, such as `sleep 5`
selection    which stage set a container gets
stage_file   the YAML format, and the stage sets that are built in
runtime      the implementation of `kubelet.runtime.Runtime`
"""
