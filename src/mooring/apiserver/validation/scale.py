"""What is wrong with a scale: the number of replicas, seen alone."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.kinds.workloads import nonnegative_faults
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.metadata import name_is_dns_subdomain, object_meta_faults


def scale_faults(scale: Document) -> list[Fault]:
    faults = object_meta_faults(scale["metadata"], True, name_is_dns_subdomain, "metadata")
    faults += nonnegative_faults((scale.get("spec") or {}).get("replicas"), "spec.replicas")
    return faults
