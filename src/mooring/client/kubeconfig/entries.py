"""The entries of kubeconfig files: clusters, users and contexts by name.

Input: kubeconfig files. Output: typed entries that remember their file; or a `KubeconfigError` of one line.

1. Of several files, the first with an entry of a name, or with a current context, wins. Entries are never merged.
2. Relative paths are relative to their file. They are returned as absolute paths.
3. An error names the file, the entry and the field.
4. Only invalid values are rejected here. Missing fields are an error when the entry is used.
"""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from mooring.api.decode import convert_as
from mooring.api.errors import DecodeError, ObjectError
from mooring.api.views.meta import View
from mooring.api.yaml import load_documents


class KubeconfigError(ValueError):
    """A kubeconfig cannot be used. The text names the place, the value found and the value expected."""


class NamedExtension(View):
    name: str = ""
    extension: Any = None  # any JSON, passed to a plug-in unchanged


class ClusterEntry(View, rename="kebab"):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: tuple[NamedExtension, ...] = ()


class ExecVariable(View):
    name: str = ""
    value: str = ""


class ExecEntry(View):
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[ExecVariable, ...] = ()
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class UserEntry(View, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: tuple[str, ...] = msgspec.field(default=(), name="as-groups")
    impersonate_user_extra: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict, name="as-user-extra")
    username: str = ""
    password: str = ""
    auth_provider: Mapping[str, Any] | None = None
    exec: ExecEntry | None = None


class ContextEntry(View):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


AnyEntry = TypeVar("AnyEntry", ClusterEntry, UserEntry, ContextEntry)


@dataclass(frozen=True, slots=True)
class Named(Generic[AnyEntry]):
    """An entry and its place in a file. `what` is the kind of entry."""

    what: str
    name: str
    file: str
    entry: AnyEntry

    def wrong(self, field_name: str, problem: str) -> KubeconfigError:
        where = f"{self.file}: {self.what} {self.name!r}"
        return KubeconfigError(f"{where}: {field_name}: {problem}" if field_name else f"{where}: {problem}")

    def path(self, text: str) -> str:
        """The absolute form of a path in this entry."""
        return str(Path(self.file).absolute().parent / text) if text else ""

    def decoded(self, field_name: str, text: str) -> bytes:
        """The decoded form of a base64 field of this entry."""
        try:
            return b64decode("".join(text.split()), validate=True)
        except (Base64Error, ValueError) as error:
            raise self.wrong(field_name, f"expected data in base 64: {error}") from None


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """One file, or several files merged."""

    files: Sequence[str] = ()
    current_context: str = ""
    clusters: Mapping[str, Named[ClusterEntry]] = field(default_factory=dict)
    users: Mapping[str, Named[UserEntry]] = field(default_factory=dict)
    contexts: Mapping[str, Named[ContextEntry]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.clusters or self.users or self.contexts or self.current_context)


def read_kubeconfig(file: str) -> Kubeconfig:
    """Read one file. Raises `KubeconfigError`, or `FileNotFoundError` if it does not exist."""
    try:
        documents = load_documents(Path(file).read_bytes(), file)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise KubeconfigError(f"{file}: cannot be read: {error.strerror}") from error
    except ObjectError as error:
        raise KubeconfigError(str(error)) from None
    plain = documents[0].data if documents else {}
    if not isinstance(plain, dict):
        raise KubeconfigError(f"{file}: expected a mapping with clusters, users and contexts, found {plain!r:.40}")
    kind = plain.get("kind") or "Config"
    if kind != "Config":
        raise KubeconfigError(f"{file}: kind: expected Config, found {kind!r}")
    current = plain.get("current-context") or ""
    if not isinstance(current, str):
        raise KubeconfigError(f"{file}: current-context: expected a name, found {current!r}")
    return Kubeconfig(
        files=(file,),
        current_context=current,
        clusters=_entries(file, plain, "clusters", "cluster", ClusterEntry),
        users=_entries(file, plain, "users", "user", UserEntry),
        contexts=_entries(file, plain, "contexts", "context", ContextEntry),
    )


def merged(configs: Sequence[Kubeconfig]) -> Kubeconfig:
    """Merge files. The first one wins."""
    backwards = list(reversed(configs))
    return Kubeconfig(
        files=[file for config in configs for file in config.files],
        current_context=next((config.current_context for config in configs if config.current_context), ""),
        clusters={name: entry for config in backwards for name, entry in config.clusters.items()},
        users={name: entry for config in backwards for name, entry in config.users.items()},
        contexts={name: entry for config in backwards for name, entry in config.contexts.items()},
    )


def _entries(
    file: str, plain: Mapping[str, Any], section: str, what: str, view: type[AnyEntry]
) -> dict[str, Named[AnyEntry]]:
    listed = plain.get(section) or []
    if not isinstance(listed, list):
        raise KubeconfigError(f"{file}: {section}: expected a list, found {listed!r:.40}")
    found: dict[str, Named[AnyEntry]] = {}
    for number, item in enumerate(listed):
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str):
            raise KubeconfigError(f"{file}: {section}[{number}].name: expected the name of a {what}")
        body = item.get(what) or {}
        if not isinstance(body, dict):
            raise KubeconfigError(f"{file}: {what} {name!r}: expected a mapping under {what!r}")
        if name not in found:
            found[name] = Named(what, name, file, _entry(file, what, name, body, view))
    return found


def _entry(file: str, what: str, name: str, body: dict[str, Any], view: type[AnyEntry]) -> AnyEntry:
    try:
        return convert_as(view, body)
    except DecodeError as error:
        raise KubeconfigError(f"{file}: {what} {name!r}: {error.path}: {error.problem}") from None
