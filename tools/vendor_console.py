"""Downloads the ES modules of the console from npm into `src/mooring/console/static/vendor/`, and the checks of its
accessibility (axe-core) into `tests/console/vendor/`.

    .venv/bin/python tools/vendor_console.py           the versions in PACKAGES
    .venv/bin/python tools/vendor_console.py --check   only compares the files with the manifest

1. Each archive is compared with the hash in PACKAGES. To update a module, change its version and hash
   (`npm view PACKAGE dist.integrity`) and run the script.
2. Browsers find modules by address, so the names of packages in `import` statements are replaced by relative paths, and
   the references to source maps, which are not copied, are removed. A script that defines a variable (`SCRIPTS`)
   exports it: uPlot has no small module. Nothing else changes.
3. In each folder `manifest.json` has the version, licence and hashes of each module; `LICENSES.txt` has the texts of
   the licences.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import sys
import tarfile
from base64 import b64encode
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

ROOT = Path(__file__).parents[1]
MODULES_FOLDER = ROOT / "src" / "mooring" / "console" / "static" / "vendor"
TESTS_FOLDER = ROOT / "tests" / "console" / "vendor"
DOWNLOAD_S_MAX = 60


class Package(NamedTuple):
    name: str
    version: str
    licence: str
    integrity: str
    files: dict[str, str]
    """File in the archive: file in `vendor/`."""


PACKAGES = (
    Package(
        "preact",
        "11.2.0",
        "MIT",
        "sha512-/HfHI/7N84e6GrWBJ3J280z3mLaRJiDcSvj/A+y/4AbLnND/1UlGHe1sR6oYuTGwId0nP7dqDU9OnLxMPZ7xBg==",
        {"dist/preact.mjs": "preact.js", "hooks/dist/hooks.mjs": "hooks.js"},
    ),
    Package(
        "htm",
        "3.1.1",
        "Apache-2.0",
        "sha512-983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        {"dist/htm.mjs": "htm.js"},
    ),
    Package(
        "@preact/signals-core",
        "1.14.5",
        "MIT",
        "sha512-vcRv7Ityz5JVmeiVqIluLFzT/PDS/AlhHUpw3/aUWqcVUs6bDGIPXE/6RSC4evBNWYvnniozg5Syfj33al3gkg==",
        {"dist/signals-core.mjs": "signals-core.js"},
    ),
    Package(
        "@preact/signals",
        "2.11.4",
        "MIT",
        "sha512-Rb+5RPo9gWSaHtzJeauhHxiC8KP/IF2DEPkHPEOGOnuy2wnJzRqyeLRankUCYd6ADqtxS6GnWGv6Ie343d8aYw==",
        {"dist/signals.mjs": "signals.js"},
    ),
    Package(
        "uplot",
        "1.6.32",
        "MIT",
        "sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        {"dist/uPlot.iife.min.js": "uplot.js", "dist/uPlot.min.css": "uplot.css"},
    ),
)
TEST_PACKAGES = (
    Package(
        "axe-core",
        "4.14.0",
        "MPL-2.0",
        "sha512-9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ==",
        {"axe.min.js": "axe.min.js"},
    ),
)
FOLDERS = {MODULES_FOLDER: PACKAGES, TESTS_FOLDER: TEST_PACKAGES}
SCRIPTS = {"uplot.js": "uPlot"}
"""File in `vendor/`: the variable that the script defines."""
MODULES = {
    "preact": "./preact.js",
    "preact/hooks": "./hooks.js",
    "@preact/signals-core": "./signals-core.js",
}
_IMPORT = re.compile(r'(\b(?:from|import)\s*)"([^"./][^"]*)"')
_SOURCE_MAP = re.compile(r"\n?//# sourceMappingURL=\S*\s*$")


def download(package: Package) -> dict[str, bytes]:
    """The files of the package's archive. Exits if the archive is another one."""
    base = package.name.rpartition("/")[2]
    url = f"https://registry.npmjs.org/{package.name}/-/{base}-{package.version}.tgz"
    with urlopen(url, timeout=DOWNLOAD_S_MAX) as response:
        archive = response.read()
    found = "sha512-" + b64encode(hashlib.sha512(archive).digest()).decode()
    if found != package.integrity:
        raise SystemExit(f"{url}: found {found}, wanted {package.integrity}")
    contents: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar.getmembers():
            extracted = tar.extractfile(member)
            if extracted is not None:
                contents[member.name.partition("/")[2]] = extracted.read()
    return contents


def with_paths(source: str, name: str) -> str:
    """The module with relative paths instead of names of packages."""

    def path_of(match: re.Match[str]) -> str:
        if match[2] not in MODULES:
            raise SystemExit(f"{name} imports {match[2]!r}, which is not vendored")
        return f'{match[1]}"{MODULES[match[2]]}"'

    exported = f"\nexport default {SCRIPTS[name]};\n" if name in SCRIPTS else ""
    return _SOURCE_MAP.sub("\n", _IMPORT.sub(path_of, source)) + exported


def vendor(folder: Path, packages: tuple[Package, ...]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    manifest: list[dict[str, object]] = []
    licences: list[str] = []
    for package in packages:
        contents = download(package)
        hashes: dict[str, str] = {}
        for source, target in package.files.items():
            text = contents[source].decode()
            module = (with_paths(text, target) if folder == MODULES_FOLDER else text).encode()
            (folder / target).write_bytes(module)
            hashes[target] = hashlib.sha256(module).hexdigest()
        manifest.append(
            {
                "name": package.name,
                "version": package.version,
                "licence": package.licence,
                "integrity": package.integrity,
                "sha256": hashes,
            }
        )
        licences.append(f"{package.name} {package.version}\n\n{contents['LICENSE'].decode().strip()}\n")
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    (folder / "LICENSES.txt").write_text(f"\n{'-' * 80}\n\n".join(licences), encoding="utf-8")


def problems(folder: Path, packages: tuple[Package, ...]) -> list[str]:
    """What differs between the files and the manifest, or between the manifest and the packages."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    found: list[str] = []
    if [(package["name"], package["version"], package["integrity"]) for package in manifest] != [
        (package.name, package.version, package.integrity) for package in packages
    ]:
        found.append(f"{folder}: other packages in manifest.json than in tools/vendor_console.py")
    expected = {name: digest for package in manifest for name, digest in package["sha256"].items()}
    modules = (path for path in folder.iterdir() if path.suffix in (".css", ".js"))
    present = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in modules}
    found += [
        f"{name}: differs from manifest.json"
        for name in sorted({*expected} | {*present})
        if expected.get(name) != present.get(name)
    ]
    return found


if __name__ == "__main__":
    if "--check" not in sys.argv[1:]:
        for folder, packages in FOLDERS.items():
            vendor(folder, packages)
    differences = [problem for folder, packages in FOLDERS.items() for problem in problems(folder, packages)]
    print("\n".join(differences) or f"{len(PACKAGES) + len(TEST_PACKAGES)} packages, as in manifest.json")
    raise SystemExit(bool(differences))
