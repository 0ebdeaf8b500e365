#!/usr/bin/env bash
# check_wheel.sh: build the wheel, install it on each supported Python of this machine, and use it outside the tree.
#
# Supported Pythons are 3.11, 3.12 and 3.13, on the PATH or installed by pyenv. A version that the machine lacks is named
# and not checked; without any, the check fails. Each installation explains a pod and starts a cluster: both read data
# files of the package.
set -euo pipefail

tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$tree/examples/clusters/harbour.yaml" "$tree/examples/manifests/demo.yaml" "$tree/requirements.txt" "$work"
cd "$work"

# pip builds in the source tree and leaves build/ there, so it gets a copy.
mkdir source
(cd "$tree" && cp -r src pyproject.toml setup.py LICENSE README.md "$work/source")
commit=$(git -C "$tree" rev-parse HEAD)
MOORING_COMMIT=$commit "$tree/.venv/bin/python" -m pip -qq wheel --no-deps --no-build-isolation --wheel-dir "$work" ./source
wheel=$(echo "$work"/mooring-*.whl)

find_python() {  # VERSION -> path of an interpreter
    local candidate
    for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        if "$candidate" -c "import sys, venv, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

check() {  # VERSION PYTHON
    local bin="$work/$1/bin"
    "$2" -m venv "$work/$1"
    "$bin/pip" -qq --disable-pip-version-check install --constraint requirements.txt "$wheel"
    "$bin/mooring" --version
    "$bin/mooring" version -o json | grep -q "\"commit\": \"$commit\""
    "$bin/mooring" explain -f harbour.yaml harbour/tug-2 >"$1.explain"
    grep -q "harbour/tug-2 goes to quay-" "$1.explain"

    "$bin/mooring" up --ephemeral --port 0 --nodes 3 -f demo.yaml >"$1.up" 2>&1 &
    local cluster=$!
    for _ in $(seq 600); do
        grep -q "export KUBECONFIG" "$1.up" && break
        kill -0 "$cluster" 2>/dev/null || break
        sleep 0.1
    done
    kill -TERM "$cluster" 2>/dev/null || true
    wait "$cluster" || { cat "$1.up" >&2; return 1; }
    grep -q "export KUBECONFIG" "$1.up" || { cat "$1.up" >&2; return 1; }
}

checked=0
for version in 3.11 3.12 3.13; do
    python=$(find_python "$version")
    if [ -z "$python" ]; then
        echo "wheel: no Python $version on this machine, not checked"
        continue
    fi
    echo "wheel: checking on Python $version"
    check "$version" "$python"  # not behind ||: that would switch errexit off inside
    checked=$((checked + 1))
done
[ "$checked" -gt 0 ] && echo "wheel: works" || { echo "wheel: no supported Python found" >&2; exit 1; }
