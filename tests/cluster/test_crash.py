"""A control plane that is killed: acknowledged writes survive, and watches continue or expire."""

from __future__ import annotations

import http.client
import signal
import ssl
import threading
from pathlib import Path
from typing import Any

import msgspec

from bench.machine import free_port
from mooring.kit.entropy import Entropy
from tests.cluster.running import ADMIN_TOKEN, WITHOUT_OTHERS, Up, running
from tests.store.etcd.builders import Etcd
from tests.waiting import LIMIT_S, wait_until

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
HEADERS = {"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": "application/json"}
KILLS = 3
WRITERS = 3


class Writer(threading.Thread):
    """Creates and changes objects as quickly as it can until the server is gone; records what was acknowledged."""

    def __init__(self, up: Up, name: str) -> None:
        super().__init__(name=name)
        self._port, self._tls = up.port, up.tls()
        self.acknowledged: dict[str, str] = {}
        """The data of each object, as it was last acknowledged."""
        self.in_flight: dict[str, str] = {}
        """What was sent last, and may have happened or not."""
        self.last_version = 0

    def run(self) -> None:
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=LIMIT_S, context=self._tls)
        number = 0
        try:
            while True:
                number += 1
                self._write(connection, f"{self.name}-{number}", "first", "POST", CONFIG_MAPS)
                if number % 3 == 0:
                    name = f"{self.name}-{number - 1}"
                    self._write(connection, name, "second", "PUT", f"{CONFIG_MAPS}/{name}")
        except (OSError, http.client.HTTPException):
            return
        finally:
            connection.close()

    def _write(self, connection: http.client.HTTPSConnection, name: str, text: str, method: str, path: str) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text}}
        self.in_flight = {name: text}
        connection.request(method, path, msgspec.json.encode(body), HEADERS)
        response = connection.getresponse()
        answer = msgspec.json.decode(response.read())
        assert response.status in (200, 201), answer
        self.acknowledged[name] = text
        self.last_version = int(answer["metadata"]["resourceVersion"])


def test_what_was_acknowledged_survives_kill_9_and_watches_go_on(tmp_path: Path) -> None:
    entropy = Entropy(9)
    expected: dict[str, str] = {}
    last_version = 0
    port = free_port()
    for turn in range(KILLS):
        with running(tmp_path, "--data-dir", str(tmp_path / "data"), *WITHOUT_OTHERS, port=port) as up:
            _check_everything(up, expected)
            if last_version:
                _check_watch_from(up, last_version)
            writers = [Writer(up, f"turn{turn}-{number}") for number in range(WRITERS)]
            for writer in writers:
                writer.start()
            enough = 20 + entropy.integer_below(150)
            _wait_acknowledged(writers, enough)
            assert up.end(signal.SIGKILL) == -signal.SIGKILL
            for writer in writers:
                writer.join(LIMIT_S)
                expected |= writer.acknowledged
                # The write that was not acknowledged may have happened: then it is what counts.
                expected |= {name: f"{expected.get(name, '')}|{text}" for name, text in writer.in_flight.items()}
            last_version = max(writer.last_version for writer in writers)
    with running(tmp_path, "--data-dir", str(tmp_path / "data"), *WITHOUT_OTHERS, port=port) as up:
        _check_everything(up, expected)
        assert up.end() == 0
        assert "Traceback" not in up.log()


def _wait_acknowledged(writers: list[Writer], count: int) -> None:
    wait_until(lambda: sum(len(writer.acknowledged) for writer in writers) >= count, each_s=0.001)


def _check_everything(up: Up, expected: dict[str, str]) -> None:
    items = up.ask("GET", CONFIG_MAPS).document()["items"]
    found = {
        item["metadata"]["name"]: item["data"]["text"] for item in items if "data" in item and "text" in item["data"]
    }
    for name, texts in expected.items():
        allowed = texts.split("|")
        assert found.get(name, "") in allowed, f"{name}: {found.get(name)!r} was found, {allowed} was written"


def _check_watch_from(up: Up, version: int) -> None:
    """A watch from before the kill delivers the first change after it."""
    since = up.ask("GET", CONFIG_MAPS).document()["metadata"]["resourceVersion"]
    assert int(since) >= version
    name = f"after-{version}"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    assert up.ask("POST", CONFIG_MAPS, body).code == 201
    with up.opened(f"{CONFIG_MAPS}?watch=1&resourceVersion={version}") as watch:
        event: Any = None
        while event is None or event["object"]["metadata"].get("name") != name:
            event = msgspec.json.decode(watch.readline())
            if event["type"] == "ERROR":
                assert event["object"]["code"] == 410
                return


def test_two_servers_on_one_etcd_are_one_cluster(etcd_alone: Etcd, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    options = [("--store", etcd_alone.url, "--data-dir", str(folder / "data"), *WITHOUT_OTHERS) for folder in folders]
    with running(folders[0], *options[0]) as one, running(folders[1], *options[1]) as other:
        since = other.ask("GET", CONFIG_MAPS).document()["metadata"]["resourceVersion"]
        watch, connection = _open_watch(other, f"{CONFIG_MAPS}?watch=1&resourceVersion={since}")
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"a": "1"}}
        assert one.ask("POST", CONFIG_MAPS, body).code == 201
        event = msgspec.json.decode(watch.readline())
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "shared")
        assert other.ask("GET", f"{CONFIG_MAPS}/shared").document()["data"] == {"a": "1"}
        # Whoever has seen an old version does not overwrite what went through the other one.
        old = one.ask("GET", f"{CONFIG_MAPS}/shared").document()
        assert other.ask("PUT", f"{CONFIG_MAPS}/shared", {**old, "data": {"a": "2"}}).code == 200
        assert one.ask("PUT", f"{CONFIG_MAPS}/shared", {**old, "data": {"a": "3"}}).code == 409
        event = msgspec.json.decode(watch.readline())
        assert (event["type"], event["object"]["data"]) == ("MODIFIED", {"a": "2"})
        assert one.end(signal.SIGKILL) == -signal.SIGKILL
        assert other.ask("DELETE", f"{CONFIG_MAPS}/shared").code == 200
        assert msgspec.json.decode(watch.readline())["type"] == "DELETED"
        watch.close()
        connection.close()


def _open_watch(up: Up, path: str) -> tuple[http.client.HTTPResponse, http.client.HTTPSConnection]:
    tls: ssl.SSLContext = up.tls()
    connection = http.client.HTTPSConnection("127.0.0.1", up.port, timeout=LIMIT_S, context=tls)
    connection.request("GET", path, headers=HEADERS)
    return connection.getresponse(), connection
