from mooring.api.load import load as load
from mooring.cluster.embedded import Cluster as Cluster
from mooring.scheduler.engine import Engine as Engine

__all__ = ["Cluster", "Engine", "__version__", "load"]

__version__: str
