#!/bin/sh
# Have an etcd for the tests of the store on etcd: the one that is there, or the one that the system's packages have.
#
# Says in one line what it found or did, and never fails: without an etcd those tests are deselected, which the run of
# the tests says as well. It asks for nothing but `apt-get`, and only as root: whoever is not decides for themselves.
set -u

seconds_max=180

say() { echo "etcd: $*"; }

found() {
    path=$(command -v etcd) || return 1
    say "$path, $(etcd --version 2>/dev/null | head -n 1), is there$1"
}

install() {
    # Debian calls it etcd-server from 2023 on, and etcd before.
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
    say "not installed, and there is no apt-get to install it: its tests will be deselected"
elif [ "$(id -u)" -ne 0 ]; then
    say "not installed, and we are not root: its tests will be deselected; 'apt-get install etcd-server' installs it"
else
    say "not installed: trying apt-get install etcd-server ..."
    install || { timeout "$seconds_max" apt-get update -qq >/dev/null 2>&1 && install; } || true
    found ": apt-get installed it" || say "apt-get could not install it: its tests will be deselected"
fi
exit 0
