"""The files of a scenario, for workers that do not have them.

`PackedInput` is a file or a folder as the sender reads it. A worker unpacks the inputs of a simulation into its
temporary directory while the simulation runs (`unpacked_inputs`).

1. An input is identified by the hash of its contents. An engine sends an input once, not once for each simulation.
2. A path depends on the process, the contents and the last part of the name: two simulations of one process that read
   the same input share a file, and a plugin file that is loaded again replaces its module.
3. Nothing is left in the temporary directory when no simulation runs. What a process leaves that is killed, the next
   simulation on the machine removes.
4. An error has the name that the file has in the scenario.
"""

from __future__ import annotations

import shutil
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from pathlib import Path

import msgspec

from mooring.kit.temporary_directory import temporary_directory
from mooring.simulator.errors import ScenarioError

SENT_BYTES_MAX = 1 << 30
"""Compressed inputs of a sweep."""
COMPRESSION_LEVEL = 1
DIRECTORY_PREFIX = "mooring-inputs-"


class PackedInput(msgspec.Struct, frozen=True):
    """A file, or the files of a folder."""

    hash: str
    """Of the contents, and of the names in a folder."""
    data: bytes
    """The encoded contents, compressed."""


def content_hash(name: str) -> str:
    """The hash of a file or folder. Raises `ScenarioError`."""
    return _hash(Path(name).is_dir(), _read(name))


def packed_input(name: str) -> PackedInput:
    """Raises `ScenarioError`."""
    is_folder, contents = Path(name).is_dir(), _read(name)
    data = zlib.compress(msgspec.msgpack.encode((is_folder, contents)), COMPRESSION_LEVEL)
    return PackedInput(_hash(is_folder, contents), data)


@contextmanager
def unpacked_inputs(inputs: Mapping[str, PackedInput]) -> Iterator[Mapping[str, str]]:
    """The path of each input while the block runs. A `ScenarioError` of the block gets the names of the inputs back."""
    _directory.enter()
    try:
        path_of = {name: str(_directory.unpack(name, packed)) for name, packed in inputs.items()}
        try:
            yield path_of
        except ScenarioError as error:
            raise ScenarioError(_with_names(error.where, path_of), _with_names(error.text, path_of)) from error
    finally:
        _directory.leave()


class _InputDirectory:
    """The temporary directory of this process. It has the same name whenever it exists."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._path: Path | None = None
        self._open = ExitStack()

    def enter(self) -> None:
        with self._lock:
            if not self._users:
                self._path = self._open.enter_context(temporary_directory(DIRECTORY_PREFIX, self._path))
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._open.close()

    def unpack(self, name: str, packed: PackedInput) -> Path:
        with self._lock:
            assert self._path is not None, "unpack belongs between enter and leave"
            path = self._path / packed.hash / (Path(name).name or "input")
            if not path.exists():
                try:
                    _write(path, packed)
                except OSError as error:
                    shutil.rmtree(path.parent, ignore_errors=True)
                    text = f"cannot be written to {self._path} of a worker: {error.strerror or error}"
                    raise ScenarioError(name, text) from error
            return path


_directory = _InputDirectory()


def _read(name: str) -> dict[str, bytes]:
    """The contents by name. The only name for a file is empty; a folder has the files that are directly in it."""
    path = Path(name)
    try:
        if not path.is_dir():
            return {"": path.read_bytes()}
        return {file.name: file.read_bytes() for file in sorted(path.iterdir()) if file.is_file()}
    except OSError as error:
        raise ScenarioError(name, f"cannot be read: {error.strerror or error}") from error


def _write(path: Path, packed: PackedInput) -> None:
    encoded = zlib.decompress(packed.data)
    is_folder, contents = msgspec.msgpack.decode(encoded, type=tuple[bool, dict[str, bytes]])
    (path if is_folder else path.parent).mkdir(parents=True, exist_ok=True)
    for file, content in contents.items():
        (path / file if is_folder else path).write_bytes(content)


def _hash(is_folder: bool, contents: Mapping[str, bytes]) -> str:
    digest = blake2b(b"folder" if is_folder else b"file", digest_size=32)
    for file, content in contents.items():
        # The names within a folder matter: they are the order in which it is read.
        digest.update(file.encode() + b"\0" + blake2b(content).digest())
    return digest.hexdigest()


def _with_names(text: str, path_of: Mapping[str, str]) -> str:
    for name, path in path_of.items():
        text = text.replace(path, name)
    return text
