#!/bin/sh
# ensure_browser.sh: find Chromium for the tests of the console, or install it with apt-get if the user is root.
#
# Prints one line with the result, and never fails: without it those tests are deselected, and the test run reports it.
set -u

seconds_max=300

say() { echo "browser: $*"; }

found() {
    path=$(command -v chromium || command -v chromium-browser) || return 1
    say "$path, $("$path" --version --no-sandbox 2>/dev/null | head -n 1), found$1"
}

install() {
    DEBIAN_FRONTEND=noninteractive timeout "$seconds_max" \
        apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null 2>&1
}

if found ""; then
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    say "not installed, and apt-get not found: its tests will be deselected"
elif [ "$(id -u)" -ne 0 ]; then
    say "not installed, and the user is not root: its tests will be deselected; 'apt-get install chromium' installs it"
else
    say "not installed: trying apt-get install chromium ..."
    install || { timeout "$seconds_max" apt-get update -qq >/dev/null 2>&1 && install; } || true
    found ": apt-get installed it" || say "apt-get could not install it: its tests will be deselected"
fi
exit 0
