"""Why a log cannot be read: what a kubelet answers before it looks for a log.

Comes in   a pod as the API server has it, the name of a container
Goes out   a sentence of the kubelet v1.36, or nothing; which run of the container is meant
"""

from __future__ import annotations

from mooring.api.document import Document

_LISTS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_WAITING = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


def why_no_log(pod: Document, container: str, *, is_previous: bool) -> str:
    """Empty if there is one."""
    name, told = pod["metadata"]["name"], _told(pod, container)
    who = f'container "{container}" in pod "{name}"'
    if told is None:
        return f"{who} is not available"
    state = told.get("state") or {}
    last = (told.get("lastState") or {}).get("terminated") or {}
    if is_previous:
        return "" if last.get("containerID") else f"previous terminated {who} not found"
    if state.get("running") is not None:
        return ""
    if state.get("terminated") is not None or last:
        has_id = (state.get("terminated") or {}).get("containerID") or last.get("containerID")
        return "" if has_id else f"{who} is terminated"
    reason = (state.get("waiting") or {}).get("reason", "")
    return f"{who} is waiting to start: {_WAITING.get(reason, reason)}"


def logged_attempt(pod: Document, container: str, *, is_previous: bool) -> int:
    """Whose log is meant: of the run that the status tells, or of the one before.

    Of a container that waits to be started again both are the run that ended last: so a kubelet has it.
    """
    told = _told(pod, container) or {}
    state, attempt = told.get("state") or {}, int(told.get("restartCount", 0))
    is_told_of = state.get("running") is not None or state.get("terminated") is not None
    return attempt - 1 if is_previous and is_told_of else attempt


def _told(pod: Document, container: str) -> Document | None:
    status = pod.get("status") or {}
    return next((each for field in _LISTS for each in status.get(field) or () if each["name"] == container), None)
