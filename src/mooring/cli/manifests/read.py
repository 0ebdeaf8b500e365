"""Reads manifests: files, folders and standard input, into checked views.

The input is what `-f` names: YAML with any number of documents, JSON, dumps of `kubectl get -o yaml`. The output is
`Manifests`: every object that scheduling or admission reads, with its origin, and a count of the skipped ones.

 1. All problems of all files are reported together. A file that is not YAML has one problem; each object has its own.
 2. Objects keep the order of the files and of the text. Of two with the same name the later one counts, as if both were
    applied; see `explain.cluster_input`.
 3. JSON is decoded from its bytes, item by item. JSON of an unexpected form is read like YAML.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeAlias

import msgspec

from mooring.api.decode import convert_as, decode_as, view_of
from mooring.api.document import Document
from mooring.api.errors import DecodeError, UnknownKindError
from mooring.api.views.meta import ApiObject, ObjectWithRaw, View
from mooring.api.yaml import YamlError, load_documents
from mooring.cli.errors import InputError, Problem
from mooring.cli.manifests.checks import problems_of
from mooring.cli.manifests.kinds import POLICY_KINDS, advice_for, is_skipped
from mooring.cli.manifests.yaml_chunks import Chunk, JsonOrigin, Origin, SplitList, TextOrigin, documents_of, split_list

SUFFIXES = frozenset((".yaml", ".yml", ".json"))
STDIN = "-"
STDIN_NAME = "<stdin>"

Body: TypeAlias = msgspec.Raw | Mapping[str, object]
"""An object as JSON, or decoded from YAML."""
Advance = Callable[[int], None]
"""Called with the number of bytes read since the last call."""


@dataclass(frozen=True, slots=True)
class ManifestObject:
    """An object, and where it was found."""

    view: ApiObject
    origin: Origin
    body: Body | None = None
    """The object as it is written; None if it has a uid, because an API server has completed it."""


@dataclass(slots=True)
class Manifests:
    """Everything that the files hold."""

    objects: list[ManifestObject] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    """Objects of kinds that scheduling does not read, by kind."""
    kinds: set[str] = field(default_factory=set)
    """Kinds that the files hold, as objects or as a typed list (`PodList`), even an empty one."""
    policies: list[PlainObject] = field(default_factory=list)
    """LimitRanges and RuntimeClasses: only admission reads them."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file, or standard input."""

    name: str
    path: Path | None
    size_bytes: int = 0


def find_sources(names: Iterable[str], option: str = "-f") -> list[Source]:
    """The files that the values of an option name; a folder stands for the files in it. Raises `InputError`."""
    sources: list[Source] = []
    problems: list[Problem] = []
    for name in names:
        if name == STDIN:
            if any(source.path is None for source in sources):
                problems.append(Problem("", f"{option} - was given twice, but standard input can be read once"))
            sources.append(Source(STDIN_NAME, None))
            continue
        path = Path(name)
        if path.is_dir():
            files = sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file())
            if not files:
                problems.append(Problem(name, "found no manifests; wanted files *.yaml, *.yml or *.json in the folder"))
            sources += [Source(str(file), file, file.stat().st_size) for file in files]
        elif path.exists():
            sources.append(Source(name, path, path.stat().st_size))
        else:
            problems.append(Problem(name, f"no such file or folder; check the path given to {option}"))
    if problems:
        raise InputError(problems)
    return sources


def read_manifests(sources: Iterable[Source], stdin: BinaryIO, advance: Advance) -> Manifests:
    """Every object of every source. Raises `InputError` with all problems."""
    reader = _Reader(advance)
    _read_all(reader, sources, stdin)
    return reader.manifests


def _read_all(reader: _Reader, sources: Iterable[Source], stdin: BinaryIO) -> None:
    for source in sources:
        try:
            content = source.path.read_bytes() if source.path is not None else stdin.read()
        except OSError as error:
            reader.problems.append(Problem(source.name, f"cannot be read: {error.strerror or error}"))
            continue
        reader.read(source.name, content)
    if reader.problems:
        raise InputError(reader.problems)


class _Listed(View):
    """A list whose items are not decoded."""

    api_version: str | None = None
    kind: str | None = None
    items: list[msgspec.Raw] | None = None


class _Head(View):
    api_version: str | None = None
    kind: str | None = None


_decode_listed = msgspec.json.Decoder(_Listed).decode
_decode_head = msgspec.json.Decoder(_Head).decode


class _Reader:
    """Reads one file after the other, and collects objects and problems."""

    def __init__(self, advance: Advance) -> None:
        self.manifests = Manifests()
        self.problems: list[Problem] = []
        self._advance = advance
        self._is_empty = True
        """Whether the current file holds nothing up to here; an empty list counts as something."""

    def read(self, name: str, content: bytes) -> None:
        self._is_empty = True
        if not (content.lstrip()[:1] == b"{" and self._read_json(name, content)):
            self._read_yaml(name, content)
        if self._is_empty:
            expected = "wanted Kubernetes objects, such as the output of kubectl get nodes,pods -A -o yaml"
            self.problems.append(Problem(name, f"found nothing in it; {expected}"))

    # JSON

    def _read_json(self, name: str, content: bytes) -> bool:
        """Reads one object, or one list, from its bytes; False if it is anything else."""
        try:
            head = _decode_listed(content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        self._is_empty = False
        if head.items is None or not (head.kind or "").endswith("List"):
            self._take_raw(msgspec.Raw(content), JsonOrigin(name, content, content), "", "")
            self._advance(len(content))
            return True
        item_kind = (head.kind or "").removesuffix("List")
        self._supplied(item_kind)
        for item in head.items:
            raw = memoryview(item)
            self._take_raw(item, JsonOrigin(name, content, raw), head.api_version or "", item_kind)
            self._advance(raw.nbytes)
        return True

    def _take_raw(self, raw: msgspec.Raw, origin: JsonOrigin, api_version: str, kind: str) -> None:
        try:
            head = _decode_head(raw)
            own_version, own_kind = head.api_version or "", head.kind or ""
            if not own_kind.endswith("List") and (own_kind or kind):
                identity = (own_version, own_kind) if own_kind else (api_version, kind)
                self._take(*identity, raw, origin)
                return
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
        # One place reports everything unexpected, such as a list in a list or a number for an object.
        self._take_plain(msgspec.json.decode(raw), origin.as_text())

    # YAML

    def _read_yaml(self, name: str, content: bytes) -> None:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            self._refuse(f"{name}:{line}", "found bytes that are not UTF-8; wanted YAML or JSON")
            return
        for chunk in documents_of(text):
            cut = split_list(chunk)
            if cut is None or not self._read_split(name, cut):
                self._read_chunk(name, chunk)
                self._advance(len(chunk.text))

    def _read_chunk(self, name: str, chunk: Chunk) -> None:
        try:
            documents = load_documents(chunk.text, name)
        except YamlError as error:
            self._refuse(f"{name}:{error.line + chunk.lines_before}", f"cannot be read as YAML or JSON: {error.text}")
            return
        for number, document in enumerate(documents):
            self._is_empty = False
            self._take_plain(document.data, TextOrigin(name, chunk.text, chunk.lines_before, number))

    def _read_split(self, name: str, cut: SplitList) -> bool:
        """Reads a list item by item; False, with nothing added, if an item cannot be parsed on its own."""
        kept = (len(self.manifests.objects), self.manifests.skipped.copy(), self.manifests.kinds.copy())
        policies_before, problems_before = len(self.manifests.policies), len(self.problems)
        try:
            head = load_documents(cut.head, name)[0].data
            if not isinstance(head, Mapping) or not str(head.get("kind")).endswith("List"):
                return False
            item_kind, version = str(head["kind"]).removesuffix("List"), str(head.get("apiVersion") or "")
            self._supplied(item_kind)
            for item in cut.items:
                data = load_documents(item.text, name)[0].data
                if not isinstance(data, list) or len(data) != 1:
                    raise ValueError("not one item")
                origin = TextOrigin(name, item.text, item.lines_before, 0, "[0]")
                self._take_plain(_named(data[0], version, item_kind), origin)
                self._advance(len(item.text))
        except (YamlError, ValueError, IndexError):
            del self.manifests.objects[kept[0] :], self.problems[problems_before:]
            del self.manifests.policies[policies_before:]
            self.manifests.skipped, self.manifests.kinds = kept[1], kept[2]
            return False
        self._is_empty = False
        return True

    # Objects

    def _take_plain(self, plain: object, origin: TextOrigin) -> None:
        """Adds a decoded object, or all objects of a list."""
        if not isinstance(plain, Mapping):
            expected = "wanted a Kubernetes object with apiVersion, kind and metadata"
            self._complain(origin, "", f"found {_described(plain)}; {expected}")
            return
        api_version, kind = plain.get("apiVersion") or "", plain.get("kind") or ""
        for path, value in (("kind", kind), ("apiVersion", api_version)):
            if not isinstance(value, str):
                self._complain(origin, path, f"{path}: found {_described(value)}; wanted text such as {_SUCH_AS[path]}")
                return
        if not kind:
            self._complain(origin, "", f"found an object without kind; wanted one such as {_SUCH_AS['kind']}")
        elif kind.endswith("List") and "items" in plain:
            self._take_items(plain, str(api_version), str(kind).removesuffix("List"), origin)
        else:
            self._take(str(api_version), str(kind), plain, origin)

    def _take_items(self, plain: Mapping[str, object], version: str, item_kind: str, origin: TextOrigin) -> None:
        items = plain["items"]
        self._supplied(item_kind)
        if items is None:
            return
        if not isinstance(items, list):
            self._complain(origin, "items", f"items: found {_described(items)}; wanted a list of objects")
            return
        for index, item in enumerate(items):
            self._take_plain(_named(item, version, item_kind), origin.item(index))

    def _take(self, api_version: str, kind: str, body: Body, origin: Origin) -> None:
        """Decodes and checks one object, or skips it."""
        self._supplied(kind)
        if (api_version, kind) in POLICY_KINDS:
            plain = msgspec.json.decode(body) if isinstance(body, msgspec.Raw) else dict(body)
            self.manifests.policies.append(PlainObject({**plain, "apiVersion": api_version, "kind": kind}, origin))
            return
        if is_skipped(api_version, kind):
            self.manifests.skipped[kind] += 1
            return
        try:
            view = _decoded(view_of(api_version, kind), body)
        except UnknownKindError as error:
            if not api_version:
                version = error.known_versions[0] if error.known_versions else _SUCH_AS["apiVersion"]
                self._complain(origin, "", f"found {kind} without apiVersion; wanted {version}")
            else:
                self._complain(origin, "kind", f"{error}; {advice_for(api_version)}")
            return
        except DecodeError as error:
            advice = "; put it in quotes" if _UNQUOTED.search(error.problem) else ""
            self._complain(origin, error.path, f"{error}{advice}")
            return
        faults = list(problems_of(view))
        for path, text in faults:
            subject = f'{kind} "{view.key}"' if view.metadata.name and view.key.isprintable() else kind
            self._complain(origin, path, f"{subject}: {path}: {text}")
        if not faults:
            self.manifests.objects.append(ManifestObject(view, origin, None if view.metadata.uid else body))

    def _supplied(self, kind: str) -> None:
        if kind:
            self.manifests.kinds.add(kind)

    def _complain(self, origin: Origin, path: str, text: str) -> None:
        self.problems.append(Problem(origin.at(path), text))

    def _refuse(self, where: str, text: str) -> None:
        """Reports a file, or a document of it, that cannot be read at all."""
        self._is_empty = False
        self.problems.append(Problem(where, text))


def _decoded(view: type[ApiObject], body: Body) -> ApiObject:
    return decode_as(view, body) if isinstance(body, msgspec.Raw) else _view_of_plain(view, body)


@dataclass(frozen=True, slots=True)
class PlainObject:
    """An object as it is written, and where it was found."""

    document: Document
    origin: Origin


def read_objects(sources: Iterable[Source], stdin: BinaryIO) -> list[PlainObject]:
    """Every object of every source, of any kind, and the items of lists. Raises `InputError` with all problems."""
    reader = _PlainReader()
    _read_all(reader, sources, stdin)
    return reader.objects


class _PlainReader(_Reader):
    """Keeps objects as they are written: the API server checks them."""

    def __init__(self) -> None:
        super().__init__(lambda length: None)
        self.objects: list[PlainObject] = []

    def _read_split(self, name: str, cut: SplitList) -> bool:
        before = len(self.objects)
        is_read = super()._read_split(name, cut)
        if not is_read:
            del self.objects[before:]
        return is_read

    def _take(self, api_version: str, kind: str, body: Body, origin: Origin) -> None:
        plain = msgspec.json.decode(body) if isinstance(body, msgspec.Raw) else body
        if not api_version:
            self._complain(origin, "", f"found {kind} without apiVersion; wanted one such as {_SUCH_AS['apiVersion']}")
            return
        for path in ("metadata", "spec", "status"):
            part = plain.get(path)
            if not isinstance(part, dict) and (part is not None or path == "metadata"):
                self._complain(origin, path, f"{path}: found {_described(part)}; wanted an object")
                return
        metadata = plain["metadata"]
        assert isinstance(metadata, dict), "checked above"
        for path in ("name", "namespace", "uid"):
            text = metadata.get(path)
            if text is not None and not isinstance(text, str):
                found = f"metadata.{path}: found {_described(text)}; wanted text, which may need quotes"
                self._complain(origin, f"metadata.{path}", found)
                return
        try:
            _check_form(api_version, kind, plain)
        except DecodeError as error:
            self._complain(origin, error.path, str(error))
            return
        self.objects.append(PlainObject({**plain, "apiVersion": api_version, "kind": kind}, origin))


_UNQUOTED = re.compile(r"expected a string, found (true|false|[-+.\d]\S*)$")
"""A label value without quotes: YAML reads `yes` as a boolean and `1.10` as a number."""
_SUCH_AS = {"kind": "Pod or Node", "apiVersion": "v1 or apps/v1"}


def _check_form(api_version: str, kind: str, plain: Mapping[str, object]) -> None:
    """Raises `DecodeError` if a field of the view has another type: code that reads the view relies on the types."""
    try:
        view = view_of(api_version, kind)
    except UnknownKindError:  # a custom resource: only its metadata is read
        convert_as(CustomResource, {"metadata": plain["metadata"]})
        return
    convert_as(view, plain)


class CustomResource(ApiObject):
    """An object of a kind that has no view."""


def _view_of_plain(view: type[ApiObject], plain: Mapping[str, object]) -> ApiObject:
    """The view of an object from YAML. Views that keep the bytes of the object are decoded from JSON."""
    if issubclass(view, ObjectWithRaw):
        return decode_as(view, msgspec.json.encode(plain))
    return convert_as(view, plain)


def _named(item: object, api_version: str, kind: str) -> object:
    """An item with the kind of its list: items of a `PodList` may omit their kind."""
    if kind and isinstance(item, Mapping) and not item.get("kind"):
        return {**item, "apiVersion": item.get("apiVersion") or api_version, "kind": kind}
    return item


def _described(value: object) -> str:
    match value:
        case None:
            return "null"
        case Mapping():
            return "an object"
        case list():
            return "a list"
        case str():
            return f'the text "{value if len(value) <= 40 else value[:37] + "..."}"'
        case _:
            return str(value)
