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
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid, required
from mooring.apiserver.validation.names import dns_1035_label_errors, dns_subdomain_errors, port_number_errors
from mooring.apiserver.validation.schema_rules import struct_rules

REVIEW_VERSIONS = ("v1", "v1beta1")
_FORM = "; desired format: https://host[/path]"
_NOT_WEBHOOK = "should not be set when strategy is not set to Webhook"


def validate_conversion(
    conversion: Document | None, path: str, *, needs_known_review: bool, may_have_bad_bundle: bool
) -> list[FieldError]:
    if conversion is None:
        return []
    strategy = conversion.get("strategy", "")
    errors = struct_rules("apiextensions", "CustomResourceConversion").validate(conversion, path)
    webhook: Document = conversion.get("webhook") or {}
    client: Document | None = webhook.get("clientConfig")
    reviews: Sequence[str] = webhook.get("conversionReviewVersions") or ()
    if strategy != "Webhook":
        if client is not None:
            errors.append(forbidden(f"{path}.webhookClientConfig", _NOT_WEBHOOK))
        if reviews:
            errors.append(forbidden(f"{path}.conversionReviewVersions", _NOT_WEBHOOK))
        return errors
    if client is None:
        errors.append(required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook"))
    else:
        errors += _validate_client(client, f"{path}.webhookClientConfig", may_have_bad_bundle)
    return errors + _validate_review(reviews, f"{path}.conversionReviewVersions", needs_known_review)


def has_known_review(conversion: Document | None) -> bool:
    reviews = ((conversion or {}).get("webhook") or {}).get("conversionReviewVersions") or ()
    return not reviews or any(version in REVIEW_VERSIONS for version in reviews)


def validate_bundle(bundle: str, path: str) -> list[FieldError]:
    """Field errors of a CA bundle in base64."""
    try:
        x509.load_pem_x509_certificates(base64.b64decode(bundle))
    except (ValueError, binascii.Error):
        why = "unable to load root certificates: unable to parse bytes as PEM block"
        return [invalid(path, bundle, why)]
    return []


def _validate_client(client: Document, path: str, may_have_bad_bundle: bool) -> list[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        errors = [required(path, "exactly one of url or service is required")]
    elif url is not None:
        errors = _validate_url(url, f"{path}.url")
    else:
        assert service is not None
        errors = _validate_service(service, f"{path}.service")
    if client.get("caBundle") and not may_have_bad_bundle:
        errors += validate_bundle(client["caBundle"], f"{path}.caBundle")
    return errors


def _validate_url(text: str, path: str) -> list[FieldError]:
    try:
        url = urlsplit(text)
    except ValueError as error:
        return [required(path, f"url must be a valid URL: {error}{_FORM}")]
    return list(_validate_url_part(url, path))


def _validate_url_part(url: SplitResult, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    user, at, host = url.netloc.rpartition("@")
    if url.scheme != "https":
        errors.append(invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    if not host:
        errors.append(invalid(path, host, f"host must be specified{_FORM}"))
    if at:
        errors.append(invalid(path, user, "user information is not permitted in the URL"))
    if url.fragment:
        errors.append(invalid(path, url.fragment, "fragments are not permitted in the URL"))
    if url.query:
        errors.append(invalid(path, url.query, "query parameters are not permitted in the URL"))
    return errors


def _validate_service(service: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not service.get("namespace"):
        errors.append(required(f"{path}.name"))
    if not service.get("name"):
        errors.append(required(f"{path}.namespace"))
    wrong = port_number_errors(service.get("port", 0))
    if wrong:
        errors.append(invalid(f"{path}.port", service.get("port", 0), f"port is not valid: {', '.join(wrong)}"))
    if service.get("path") is not None:
        errors += _validate_path(service["path"], f"{path}.path")
    return errors


def _validate_path(text: str, path: str) -> list[FieldError]:
    if text in ("", "/"):
        return []
    if text == "//":
        return [invalid(path, text, "segment[0] may not be empty")]
    errors = [] if text.startswith("/") else [invalid(path, text, "must start with a '/'")]
    for index, step in enumerate(text[1:].removesuffix("/").split("/")):
        if not step:
            errors.append(invalid(path, text, f"segment[{index}] may not be empty"))
            continue
        errors += [invalid(path, text, f"segment[{index}]: {why}") for why in dns_subdomain_errors(step)]
    return errors


def _validate_review(versions: Sequence[str], path: str, needs_known: bool) -> list[FieldError]:
    if not versions:
        return [required(path)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            errors.append(invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        errors += [invalid(f"{path}[{index}]", version, why) for why in dns_1035_label_errors(version)]
    if needs_known and not any(version in REVIEW_VERSIONS for version in versions):
        errors.append(invalid(path, list(versions), f"must include at least one of {', '.join(REVIEW_VERSIONS)}"))
    return errors
