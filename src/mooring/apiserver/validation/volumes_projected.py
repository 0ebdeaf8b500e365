"""What is wrong with a projected volume: files from several sources in one directory.

Comes in   `projected` of a volume
Goes out   faults

 1. Two files at the same path are a fault of the whole volume, not of one file.
 2. Trust bundles and pod certificates have no rules: their gates are off in v1.36, and they are dropped before.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, required
from mooring.apiserver.validation.names import file_mode_faults, unreserved_faults
from mooring.apiserver.validation.pod_options import PodOptions
from mooring.apiserver.validation.volumes_files import downward_file_faults, key_faults

TOKEN_LIFE_S_MIN = 600
TOKEN_LIFE_S_MAX = 2**32

_KINDS = ("secret", "configMap", "downwardAPI", "serviceAccountToken")


def projected_volume_faults(source: Document, path: str, options: PodOptions) -> list[Fault]:
    faults = file_mode_faults(source.get("defaultMode"), f"{path}.defaultMode")
    taken: set[str] = set()
    for index, projection in enumerate(source.get("sources") or ()):
        here = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            if projection.get(kind) is not None:
                faults += _object_faults(projection[kind], taken, f"{here}.{kind}", path)
        if projection.get("downwardAPI") is not None:
            faults += _downward_faults(projection["downwardAPI"], taken, f"{here}.downwardAPI", path)
        if projection.get("serviceAccountToken") is not None:
            token = projection["serviceAccountToken"]
            faults += _token_faults(token, f"{here}.serviceAccountToken", path, options)
        if sum(projection.get(kind) is not None for kind in _KINDS) > 1:
            faults.append(forbidden(here, "may not specify more than 1 volume type per source"))
    return faults


def _object_faults(projection: Document, taken: set[str], here: str, path: str) -> list[Fault]:
    name = projection.get("name", "")
    faults = [] if name else [required(f"{here}.name")]
    for index, item in enumerate(projection.get("items") or ()):
        faults += key_faults(item, f"{here}.items[{index}]")
        faults += _clash_faults(item.get("path", ""), name, taken, path)
    return faults


def _downward_faults(projection: Document, taken: set[str], here: str, path: str) -> list[Fault]:
    faults: list[Fault] = []
    for file in projection.get("items") or ():
        faults += downward_file_faults(file, here)
        faults += _clash_faults(file.get("path", ""), file.get("path", ""), taken, path)
    return faults


def _clash_faults(file: str, told: str, taken: set[str], path: str) -> list[Fault]:
    if file and file in taken:
        return [invalid(path, told, "conflicting duplicate paths")]
    taken.add(file)
    return []


def _token_faults(token: Document, here: str, path: str, options: PodOptions) -> list[Fault]:
    faults: list[Fault] = []
    life_s, file = token.get("expirationSeconds", 0), token.get("path", "")
    if life_s < TOKEN_LIFE_S_MIN:
        detail = "may not specify a duration less than 10 minutes"
        faults.append(invalid(f"{here}.expirationSeconds", life_s, detail))
    if life_s > TOKEN_LIFE_S_MAX:
        detail = "may not specify a duration larger than 2^32 seconds"
        faults.append(invalid(f"{here}.expirationSeconds", life_s, detail))
    if not file:
        faults.append(required(f"{path}.path"))
    elif not options.tolerates_token_paths:
        faults += unreserved_faults(file, f"{path}.path")
    return faults
