"""What is wrong with objects: functions from documents to faults, in Kubernetes' words and order."""
