"""Nodes that run pods for real: a fleet whose containers are commands of this machine.

Comes in   a client, where to keep the pods, how many nodes this machine is to be
Goes out   a `Fleet`

It is imported only when it is asked for: simulated nodes need nothing of it.
"""

from __future__ import annotations

from pathlib import Path

from mooring.client.promise import Client
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kubelet.fleet import Fleet
from mooring.kubelet.host import host_facts
from mooring.kubelet.processes.runtime import ProcessRuntime, ProcessSettings
from mooring.kubelet.settings import host_settings


def process_fleet(client: Client, clock: Clock, entropy: Entropy, directory: Path | None, count: int) -> Fleet:
    """`directory`: where the pods are kept; None: nowhere for long."""
    host = host_facts()
    runtime = ProcessSettings(directory, host)
    return Fleet(client, clock, entropy, host_settings(host, count), lambda needs: ProcessRuntime(runtime, needs))
