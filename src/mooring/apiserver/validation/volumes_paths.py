"""What paths in a pod may look like.

Comes in   a path as text
Goes out   faults
"""

from __future__ import annotations

from mooring.apiserver.faults import Fault, invalid


def backstep_faults(value: str, path: str) -> list[Fault]:
    """A path that may not climb."""
    return [invalid(path, value, "must not contain '..'")] if ".." in value and ".." in value.split("/") else []


def descending_faults(value: str, path: str) -> list[Fault]:
    """A path below something: relative, and it may not climb."""
    faults = [invalid(path, value, "must be a relative path")] if value.startswith("/") else []
    return faults + backstep_faults(value, path)


def unreserved_faults(value: str, path: str) -> list[Fault]:
    """A path below something whose first part is not one that kubelets keep for themselves."""
    faults = descending_faults(value, path)
    if value.startswith("..") and not value.startswith("../"):
        faults.append(invalid(path, value, "must not start with '..'"))
    return faults


def file_mode_faults(mode: int | None, path: str) -> list[Fault]:
    if mode is None or 0 <= mode <= 0o777:
        return []
    return [invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive")]
