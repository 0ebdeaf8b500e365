"""Mooring: the Kubernetes scheduling system, in Python.

The package is a house through which a pod walks. From the ground up:

  kit         time, chance, tasks, heaps: what every floor stands on
  api         rules about Kubernetes objects, and typed views of them
  store       the numbered history of the cluster's objects
  client      the one way to an API server, in the process or over the network
  apiserver, scheduler, controllers, kubelet
              the parts of a control plane; none knows another, each knows `client`
  cluster     the one place that builds and wires them
  simulator   whole clusters on virtual time
  cli, web    the doors to the street

Knowledge flows one way, from the bottom of this list to the top; import-linter holds it.
"""

__version__ = "0.1.0"
