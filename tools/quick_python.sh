#!/bin/sh
# quick_python.sh [PYTHON...]: print the path of the Python for .venv: `python3`, or a clearly faster one of this machine.
#
# A Python without profile-guided optimization, the default of pyenv, takes up to 1.5 times as long. No build flag
# identifies it reliably, so the candidates run a short loop in turns, and the best time of each counts. `python3` is
# chosen unless another one is faster by more than `clearly_percent`; a message on standard error then names it and how
# to keep `python3`.
#
# A candidate is Python 3.11 or newer with venv, ensurepip, sqlite3 and ssl. If there is none, `python3` is printed, and
# the caller reports the error. Arguments replace the candidates of the machine; the first argument replaces `python3`.
set -u

rounds=5
clearly_percent=15

# Prints path and version; fails for a Python that is too old or lacks a module.
fit='
import os, sys
assert sys.version_info >= (3, 11)
import ensurepip, sqlite3, ssl, venv
print(os.path.realpath(sys.executable), sys.version.split()[0])
'

# Typical work of the scheduler: calls, attributes, dicts, strings. Prints microseconds.
loop='
import time
class Pod:
    __slots__ = ("labels", "size")
    def __init__(self, labels, size):
        self.labels = labels
        self.size = size
    def weight(self, key):
        return self.labels.get(key, 0) + self.size
def work():
    seen = {}
    for number in range(20_000):
        pod = Pod({"app": number}, number)
        seen[f"pod-{number}"] = pod.weight("app")
best = min((lambda began: (work(), time.process_time() - began)[1])(time.process_time()) for _ in range(2))
print(int(best * 1e6))
'

of_the_machine() {
    for name in python3 python3.11 python3.12 python3.13 python3.14; do
        command -v "$name"
        echo "/usr/bin/$name"
        echo "/usr/local/bin/$name"
    done
}

candidates() {
    if [ $# -gt 0 ]; then printf '%s\n' "$@"; else of_the_machine; fi | while read -r path; do
        [ -x "$path" ] && "$path" -c "$fit" 2>/dev/null
    done | awk '!seen[$1]++'
}

measure() {
    for _ in $(seq "$rounds"); do
        echo "$found" | while read -r path version; do
            echo "$path $version $("$path" -c "$loop")"
        done
    done
}

found=$(candidates "$@")
if [ -z "$found" ]; then
    echo python3
    exit 0
fi
if [ "$(echo "$found" | wc -l)" -eq 1 ]; then
    echo "${found%% *}"
    exit 0
fi
measure | awk -v clearly="$clearly_percent" '
    !($1 in best) { order[++count] = $1; version[$1] = $2; best[$1] = $3 }
    $3 < best[$1] { best[$1] = $3 }
    END {
        usual = order[1]
        quickest = usual
        for (number = 2; number <= count; number++)
            if (best[order[number]] < best[quickest]) quickest = order[number]
        if (best[usual] <= best[quickest] * (1 + clearly / 100)) quickest = usual
        else
            printf "python: %s (%s) is %.1f times as quick as %s (%s) and is taken; PYTHON=python3 keeps that one\n",
                quickest, version[quickest], best[usual] / best[quickest], usual, version[usual] > "/dev/stderr"
        print quickest
    }
'
