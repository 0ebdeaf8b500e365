"""Validation of the conversion between versions of a custom kind.

1. A webhook is accepted and never called: objects of different versions differ in their apiVersion only.
2. kube-apiserver swaps the name and the namespace of a webhook's service in its errors, and so does this module.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

from cryptography import x509

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.names import dns_1035_label_faults, dns_subdomain_faults, port_number_faults

REVIEW_VERSIONS = ("v1", "v1beta1")
_FORM = "; desired format: https://host[/path]"
_NOT_WEBHOOK = "should not be set when strategy is not set to Webhook"


def conversion_faults(
    conversion: Document | None, path: str, *, needs_known_review: bool, may_have_bad_bundle: bool
) -> list[Fault]:
    if conversion is None:
        return []
    strategy = conversion.get("strategy", "")
    faults = choice_faults(strategy, ("None", "Webhook"), f"{path}.strategy")
    webhook: Document = conversion.get("webhook") or {}
    client: Document | None = webhook.get("clientConfig")
    reviews: Sequence[str] = webhook.get("conversionReviewVersions") or ()
    if strategy != "Webhook":
        if client is not None:
            faults.append(forbidden(f"{path}.webhookClientConfig", _NOT_WEBHOOK))
        if reviews:
            faults.append(forbidden(f"{path}.conversionReviewVersions", _NOT_WEBHOOK))
        return faults
    if client is None:
        faults.append(required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook"))
    else:
        faults += _client_faults(client, f"{path}.webhookClientConfig", may_have_bad_bundle)
    return faults + _review_faults(reviews, f"{path}.conversionReviewVersions", needs_known_review)


def choice_faults(value: str, choices: Sequence[str], path: str) -> list[Fault]:
    """A value must be one of some."""
    if not value:
        return [required(path)]
    return [] if value in choices else [not_supported(path, value, choices)]


def has_known_review(conversion: Document | None) -> bool:
    reviews = ((conversion or {}).get("webhook") or {}).get("conversionReviewVersions") or ()
    return not reviews or any(version in REVIEW_VERSIONS for version in reviews)


def bundle_faults(bundle: str, path: str) -> list[Fault]:
    """What is wrong with certificates to trust, written as base64."""
    try:
        x509.load_pem_x509_certificates(base64.b64decode(bundle))
    except (ValueError, binascii.Error):
        why = "unable to load root certificates: unable to parse bytes as PEM block"
        return [invalid(path, bundle, why)]
    return []


def _client_faults(client: Document, path: str, may_have_bad_bundle: bool) -> list[Fault]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        faults = [required(path, "exactly one of url or service is required")]
    elif url is not None:
        faults = _url_faults(url, f"{path}.url")
    else:
        assert service is not None
        faults = _service_faults(service, f"{path}.service")
    if client.get("caBundle") and not may_have_bad_bundle:
        faults += bundle_faults(client["caBundle"], f"{path}.caBundle")
    return faults


def _url_faults(text: str, path: str) -> list[Fault]:
    try:
        url = urlsplit(text)
    except ValueError as error:
        return [required(path, f"url must be a valid URL: {error}{_FORM}")]
    return list(_url_part_faults(url, path))


def _url_part_faults(url: SplitResult, path: str) -> list[Fault]:
    faults: list[Fault] = []
    user, at, host = url.netloc.rpartition("@")
    if url.scheme != "https":
        faults.append(invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    if not host:
        faults.append(invalid(path, host, f"host must be specified{_FORM}"))
    if at:
        faults.append(invalid(path, user, "user information is not permitted in the URL"))
    if url.fragment:
        faults.append(invalid(path, url.fragment, "fragments are not permitted in the URL"))
    if url.query:
        faults.append(invalid(path, url.query, "query parameters are not permitted in the URL"))
    return faults


def _service_faults(service: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    if not service.get("namespace"):
        faults.append(required(f"{path}.name"))
    if not service.get("name"):
        faults.append(required(f"{path}.namespace"))
    wrong = port_number_faults(service.get("port", 0))
    if wrong:
        faults.append(invalid(f"{path}.port", service.get("port", 0), f"port is not valid: {', '.join(wrong)}"))
    if service.get("path") is not None:
        faults += _path_faults(service["path"], f"{path}.path")
    return faults


def _path_faults(text: str, path: str) -> list[Fault]:
    if text in ("", "/"):
        return []
    if text == "//":
        return [invalid(path, text, "segment[0] may not be empty")]
    faults = [] if text.startswith("/") else [invalid(path, text, "must start with a '/'")]
    for index, step in enumerate(text[1:].removesuffix("/").split("/")):
        if not step:
            faults.append(invalid(path, text, f"segment[{index}] may not be empty"))
            continue
        faults += [invalid(path, text, f"segment[{index}]: {why}") for why in dns_subdomain_faults(step)]
    return faults


def _review_faults(versions: Sequence[str], path: str, needs_known: bool) -> list[Fault]:
    if not versions:
        return [required(path)]
    faults: list[Fault] = []
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            faults.append(invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        faults += [invalid(f"{path}[{index}]", version, why) for why in dns_1035_label_faults(version)]
    if needs_known and not any(version in REVIEW_VERSIONS for version in versions):
        faults.append(invalid(path, list(versions), f"must include at least one of {', '.join(REVIEW_VERSIONS)}"))
    return faults
