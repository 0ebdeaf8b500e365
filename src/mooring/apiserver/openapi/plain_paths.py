"""Paths of OpenAPI that are no resources: discovery, the version, and where the keys of tokens are.

Comes in   the name of a document of the third dialect: `version`, `api`, `apis/apps`, `apis/apps/v1`
Goes out   its path that is no resource, in either dialect
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.openapi.operations import camel, tag
from mooring.apiserver.openapi.schemas import Schemas
from mooring.apiserver.openapi.special import META

ROOTS = (".well-known/openid-configuration", "api", "apis", "openid/v1/jwks", "version")
"""Documents that are about no group."""

_JSON = ("application/json",)
_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")


def plain_path(name: str, schemas: Schemas) -> Document:
    """The path that has the name of a document."""
    match name.split("/"):
        case ["version"]:
            return _path(name, "getCodeVersion", "version", "io.k8s.apimachinery.pkg.version.Info", schemas)
        case [".well-known", _]:
            return _path(name, "getServiceAccountIssuerOpenIDConfiguration", "WellKnown", "", schemas)
        case ["openid", *_]:
            return _path(name, "getServiceAccountIssuerOpenIDKeyset", "openid", "", schemas)
        case ["api"]:
            return _path(name, "getCoreAPIVersions", "core", f"{META}.APIVersions", schemas)
        case ["apis"]:
            return _path(name, "getAPIVersions", "apis", f"{META}.APIGroupList", schemas)
        case ["apis", group]:
            title = camel(f"{group}/")
            return _path(name, f"get{title}APIGroup", f"{title[:1].lower()}{title[1:]}", f"{META}.APIGroup", schemas)
        case [_, *rest]:
            version = "/".join(rest)
            return _path(name, f"get{camel(version)}APIResources", tag(version), f"{META}.APIResourceList", schemas)
    raise AssertionError(f"{name!r} is no path")


def _path(name: str, operation: str, drawer: str, answer: str, schemas: Schemas) -> Document:
    dialect = schemas.dialect
    schema = dialect.reference(schemas.need_special(answer)) if answer else {"type": "string"}
    types = _TYPES if answer.startswith(META) else _JSON
    if name.startswith("openid"):
        types = ("application/jwk-set+json",)
    get: Document = {"tags": [drawer], "operationId": operation}
    if dialect.is_third:
        reply: Document = {"description": "OK", "content": {each: {"schema": schema} for each in sorted(types)}}
    else:
        if answer:
            get["consumes"] = list(types)
        get |= {"produces": list(types), "schemes": ["https"]}
        reply = {"description": "OK", "schema": schema}
    get["responses"] = {"200": reply, "401": {"description": "Unauthorized"}}
    return {f"/{name}/": {"get": get}}
