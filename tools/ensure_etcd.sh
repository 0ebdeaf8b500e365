#!/bin/sh
# ensure_etcd.sh: find etcd for the tests of the etcd store, or install it with apt-get if the user is root.
#
# Prints one line with the result, and never fails: without etcd those tests are deselected, and the test run reports it.
set -u

seconds_max=180

say() { echo "etcd: $*"; }

found() {
    path=$(command -v etcd) || return 1
    say "$path, $(etcd --version 2>/dev/null | head -n 1), found$1"
}

install() {
    # Debian has called the package etcd-server since 2023, and etcd before.
    for package in etcd-server etcd; do
        DEBIAN_FRONTEND=noninteractive timeout "$seconds_max" \
            apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 && return 0
    done
    return 1
}

if found ""; then
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    say "not installed, and apt-get not found: its tests will be deselected"
elif [ "$(id -u)" -ne 0 ]; then
    say "not installed, and the user is not root: its tests will be deselected; 'apt-get install etcd-server' installs it"
else
    say "not installed: trying apt-get install etcd-server ..."
    install || { timeout "$seconds_max" apt-get update -qq >/dev/null 2>&1 && install; } || true
    found ": apt-get installed it" || say "apt-get could not install it: its tests will be deselected"
fi
exit 0
