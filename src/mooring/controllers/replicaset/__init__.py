"""The controllers of ReplicaSets and ReplicationControllers: `plan` decides, `controller` acts."""
