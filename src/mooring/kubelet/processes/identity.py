"""As whom a container runs: always as we do, so one that must be somebody else is refused.

Comes in   a pod, a container, our own user
Goes out   why it cannot run, or nothing

To run as somebody else what a pod wants to have run as a user without rights would be worse than not to run it.
"""

from __future__ import annotations

from mooring.kubelet.full_views import WholeContainer, WholePod

ROOT = 0


def why_not_as(user: int, pod: WholePod, container: WholeContainer) -> str:
    """Empty if it may run as that user. What the container says counts before what the pod says."""
    own, whole = container.security_context, pod.spec.security_context
    wanted = own.run_as_user if own.run_as_user is not None else whole.run_as_user
    is_root_forbidden = own.run_as_non_root if own.run_as_non_root is not None else whole.run_as_non_root
    if wanted is not None and wanted != user:
        return f"container {container.name} wants to run as user {wanted}, and the process runtime runs as user {user}"
    if is_root_forbidden and user == ROOT:
        return f"container {container.name} has runAsNonRoot, and the process runtime runs as root"
    return ""
