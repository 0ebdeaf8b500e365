"""Objects from files: manifests, or what `kubectl get -o json` and `-o yaml` print.

Inputs: paths of files and folders. Output: views, in the order of the files and of the objects in them.

1. Of a folder, the `.yaml`, `.yml` and `.json` files are read, sorted by name; its subfolders are not.
2. Lists are flattened. Kinds without a view, such as ConfigMap or a custom resource, are left out: nothing decides by
   them.
3. A file that cannot be read as YAML or JSON, and an object that does not fit its kind, raise an `ObjectError` that
   names the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from mooring.api.decode import convert
from mooring.api.errors import DecodeError, ObjectError, UnknownKindError
from mooring.api.views.meta import ApiObject
from mooring.api.yaml import load_documents

ENDINGS = (".yaml", ".yml", ".json")


class LoadError(ObjectError):
    """A file does not hold objects of Kubernetes."""


def load(*paths: str | os.PathLike[str]) -> list[ApiObject]:
    """The objects of these files and folders. Raises `ObjectError`, and `OSError` if a file cannot be read."""
    views: list[ApiObject] = []
    for where, plain in load_plain(*paths):
        try:
            views.append(convert(plain))
        except UnknownKindError:
            continue
        except DecodeError as error:
            raise LoadError(f"{where}: {error}") from None
    return views


def load_plain(*paths: str | os.PathLike[str]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The objects of these files and folders with all their fields, each with the place of its document.

    Raises as `load`.
    """
    for file in _files(paths):
        for document in load_documents(file.read_bytes(), str(file)):
            if document.data is not None:  # an empty document, as between two `---`
                where = f"{file}:{document.line}"
                yield from ((where, plain) for plain in _objects(document.data, where))


def load_object(manifest: str) -> Mapping[str, object]:
    """The only object of a text in YAML or JSON. Raises `ObjectError`."""
    objects = [
        plain
        for document in load_documents(manifest)
        if document.data is not None
        for plain in _objects(document.data, f"<input>:{document.line}")
    ]
    if len(objects) != 1:
        raise LoadError(f"expected one object, found {len(objects)}")
    return objects[0]


def _files(paths: tuple[str | os.PathLike[str], ...]) -> Iterator[Path]:
    for path in map(Path, paths):
        if path.is_dir():
            yield from (file for file in sorted(path.iterdir()) if file.suffix in ENDINGS and file.is_file())
        else:
            yield path


def _objects(data: object, where: str) -> Iterator[Mapping[str, object]]:
    if not isinstance(data, Mapping):
        raise LoadError(f"{where}: expected an object, found {type(data).__name__}")
    kind, items = data.get("kind"), data.get("items")
    if not (isinstance(kind, str) and kind.endswith("List") and isinstance(items, list)):
        yield data
        return
    for item in items:
        if isinstance(item, Mapping) and kind != "List" and not item.get("kind"):
            # The items of a `PodList` need not say that they are pods.
            item = {"apiVersion": data.get("apiVersion"), "kind": kind.removesuffix("List"), **item}
        yield from _objects(item, where)
