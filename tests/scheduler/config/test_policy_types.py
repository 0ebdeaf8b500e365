"""How a Policy's extenders are read: in upper and lower case, with time-outs as the old files write them."""

import pytest

from mooring.scheduler.config import load_configuration
from mooring.scheduler.config.types import Extender, ExtenderManagedResource, ExtenderTLSConfig
from tests.scheduler.config.builders import Written, complaints_about


def with_extender(**fields: object) -> Written:
    return {"apiVersion": "v1", "kind": "Policy", "extenders": [fields]}


@pytest.mark.parametrize(
    ("fields", "extender"),
    [
        pytest.param({"urlPrefix": "u"}, Extender(url_prefix="u"), id="as it is written today"),
        pytest.param(
            {"URLPrefix": "u", "BindVerb": "b", "EnableHTTPS": True},
            Extender(url_prefix="u", bind_verb="b", enable_https=True),
            id="as it was written before 1.8",
        ),
        pytest.param({"enableHttps": True}, Extender(enable_https=True), id="as it was written until 1.22"),
        pytest.param(
            {"tlsConfig": {"Insecure": True, "ServerName": "s", "CAFile": "a", "CertData": "Yw=="}},
            Extender(tls_config=ExtenderTLSConfig(insecure=True, server_name="s", ca_file="a", cert_data=b"c")),
            id="certificates",
        ),
        pytest.param(
            {"managedResources": [{"Name": "example.com/a", "IgnoredByScheduler": True}]},
            Extender(managed_resources=(ExtenderManagedResource(name="example.com/a", ignored_by_scheduler=True),)),
            id="resources",
        ),
        pytest.param({"nodeCacheCapable": True, "ignorable": True}, Extender(node_cache_capable=True, ignorable=True)),
    ],
)
def test_names_in_any_case(fields: Written, extender: Extender) -> None:
    assert load_configuration(with_extender(**fields)).extenders == (extender,)


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [
        pytest.param(30_000_000_000, 30.0, id="nanoseconds"),
        pytest.param(1, 1e-9, id="one nanosecond"),
        pytest.param("1m30s", 90.0, id="a text"),
        pytest.param(0, 5.0, id="zero is the default"),
        pytest.param(None, 5.0, id="so is nothing"),
    ],
)
def test_time_outs(timeout: object, seconds: float) -> None:
    (extender,) = load_configuration(with_extender(httpTimeout=timeout)).extenders
    assert extender.http_timeout_s == seconds


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        pytest.param(
            {"httpTimeout": 1.5},
            'extenders[0].httpTimeout: expected a duration such as "1m30s", found the number 1.5',
            id="half a nanosecond",
        ),
        pytest.param(
            {"httpTimeout": True},
            'extenders[0].httpTimeout: expected a duration such as "1m30s", found true',
            id="true is no number",
        ),
        pytest.param(
            {"filterverbs": "x"},
            'strict decoding error: unknown field "extenders[0].filterverbs"; did you mean "filterVerb"?',
            id="a field that there is not",
        ),
        pytest.param(
            {"tlsConfig": "x"}, 'extenders[0].tlsConfig: expected an object, found the text "x"', id="not an object"
        ),
    ],
)
def test_what_cannot_be_read(fields: Written, complaint: str) -> None:
    assert complaints_about(with_extender(**fields)) == [complaint]
