"""The volumes behind the claims of placed pods: which volume of which CSI driver each pod uses on its row.

Input: placed pods; claims, PersistentVolumes and StorageClasses. Output: uses of volumes, for `attachments`; rows with
a pod whose volumes are unknown (`errors`).

A claim is resolved once for all pods that use it, and again when the claim, its volume or its class changes.

1. A claim without a volume counts as a volume of its class's provisioner, under a name that no real volume has. A claim
   that does not exist counts as nothing.
2. In-tree volumes count for the CSI driver that replaces them. kube-scheduler v1.36 counts them on nodes with a CSINode
   only; nodes without one have no limits, so the result is the same.
3. A pod whose ephemeral claim is owned by another object is an error of its row.
4. `place` and `displace` are exact inverses.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.csi_translation import (
    DRIVERS,
    MIGRATED,
    TranslationError,
    plugin_of,
    translate_inline,
    translate_volume,
)
from mooring.api.storage import (
    claim_named_by,
    class_of_claim,
    is_controlled_by_pod,
    is_ephemeral,
    not_controlled_text,
)
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, Volume
from mooring.scheduler.cache.attachments import AttachableVolume, AttachmentColumns, NodeRows, attachable
from mooring.scheduler.cache.objects import ObjectStores
from mooring.scheduler.cache.pods import PodInfo

NAMELESS_CLAIM = "PersistentVolumeClaim had no name"

_UNBOUND_HANDLE = "\0unbound"
"""Prefix of the names of volumes that do not exist yet. No volume handle contains a zero byte."""


class ClaimedVolumes:
    """The volumes that the pods of each row use."""

    def __init__(self, columns: NodeRows, attachments: AttachmentColumns) -> None:
        self._attachments = attachments
        self._objects = columns.objects
        self._store = columns.objects.of(PersistentVolumeClaim)
        self._claims: dict[str, _ClaimInUse] = {}
        self._by_volume: dict[str, dict[str, None]] = {}
        self._by_class: dict[str, dict[str, None]] = {}
        self.errors: dict[int, dict[str, str]] = {}
        """Why the volumes on a row are unknown, by row and pod."""
        for row, pods in enumerate(columns.pods_on):
            for pod in pods.values():
                if pod.volumes:
                    self.place(pod, row)
        self._store.listen(self._claim_changed)
        columns.objects.of(PersistentVolume).listen(self._volume_changed)
        columns.objects.of(StorageClass).listen(self._class_changed)

    def place(self, pod: PodInfo, row: int) -> None:
        may_have_error = False
        for volume in pod.volumes:
            name = claim_named_by(volume, pod.name)
            if name:
                self._use_claim(f"{pod.namespace}/{name}", row)
                may_have_error = may_have_error or is_ephemeral(volume)
            elif name is not None or plugin_of(volume) is not None:
                self._use_inline(volume, row, 1)
                may_have_error = True
        if may_have_error:
            self._note_owners(pod)
            self._note_error(pod, row)

    def displace(self, pod: PodInfo, row: int) -> None:
        for volume in pod.volumes:
            name = claim_named_by(volume, pod.name)
            if name:
                self._release_claim(f"{pod.namespace}/{name}", pod.uid, row)
            else:
                self._use_inline(volume, row, -1)
        self._forget_error(pod, row)

    def _use_claim(self, key: str, row: int) -> None:
        claim = self._claims.get(key)
        if claim is None:
            claim = self._claims[key] = _ClaimInUse()
            self._look_up(claim, key)
        claim.rows[row] = claim.rows.get(row, 0) + 1
        if claim.volume is not None:
            self._attachments.use(claim.volume, row, 1)

    def _release_claim(self, key: str, pod_uid: str, row: int) -> None:
        claim = self._claims[key]
        claim.owners.pop(pod_uid, None)
        if claim.volume is not None:
            self._attachments.use(claim.volume, row, -1)
        claim.rows[row] -= 1
        if not claim.rows[row]:
            del claim.rows[row]
            if not claim.rows:
                self._unlink(claim, key)
                del self._claims[key]

    def _use_inline(self, volume: Volume, row: int, pods: int) -> None:
        try:
            inline = volume_of_inline(volume)
        except TranslationError:
            return
        if inline is not None:
            self._attachments.use(inline, row, pods)

    def _claim_changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        changed = new if new is not None else old
        assert changed is not None, "a change without an object"
        claim = self._claims.get(changed.key)
        if claim is None:
            return
        self._look_up(claim, changed.key)
        for pod in claim.owners.values():
            self._forget_error(pod, pod.row)
            self._note_error(pod, pod.row)

    def _volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        changed = new if new is not None else old
        assert changed is not None, "a change without an object"
        self._look_up_all(self._by_volume.get(changed.metadata.name, {}))

    def _class_changed(self, old: StorageClass | None, new: StorageClass | None) -> None:
        changed = new if new is not None else old
        assert changed is not None, "a change without an object"
        if old is None or new is None or old.provisioner != new.provisioner:
            self._look_up_all(self._by_class.get(changed.metadata.name, {}))

    def _look_up_all(self, keys: Mapping[str, None]) -> None:
        for key in list(keys):
            self._look_up(self._claims[key], key)

    def _look_up(self, claim: _ClaimInUse, key: str) -> None:
        """Resolves a claim again, and moves the uses if its volume changed."""
        self._unlink(claim, key)
        view = self._store.get(key)
        if view is not None:
            claim.volume_name, claim.class_name = view.spec.volume_name, class_of_claim(view)
            self._link(claim, key)
        volume = volume_of_claim(self._objects, view) if view is not None else None
        if volume == claim.volume:
            return
        for row, uses in claim.rows.items():
            if claim.volume is not None:
                self._attachments.use(claim.volume, row, -uses)
            if volume is not None:
                self._attachments.use(volume, row, uses)
        claim.volume = volume

    def _link(self, claim: _ClaimInUse, key: str) -> None:
        for index, name in ((self._by_volume, claim.volume_name), (self._by_class, claim.class_name)):
            if name:
                index.setdefault(name, {})[key] = None

    def _unlink(self, claim: _ClaimInUse, key: str) -> None:
        for index, name in ((self._by_volume, claim.volume_name), (self._by_class, claim.class_name)):
            if name:
                del index[name][key]
                if not index[name]:
                    del index[name]
        claim.volume_name = claim.class_name = ""

    def _note_owners(self, pod: PodInfo) -> None:
        for volume in pod.volumes:
            if is_ephemeral(volume):
                self._claims[f"{pod.namespace}/{claim_named_by(volume, pod.name)}"].owners[pod.uid] = pod

    def _note_error(self, pod: PodInfo, row: int) -> None:
        errors = (volume_error(self._objects, pod, volume) for volume in pod.volumes)
        error = next((error for error in errors if error is not None), None)
        if error is not None:
            self.errors.setdefault(row, {})[pod.uid] = error

    def _forget_error(self, pod: PodInfo, row: int) -> None:
        errors = self.errors.get(row)
        if errors is not None and errors.pop(pod.uid, None) is not None and not errors:
            del self.errors[row]


class _ClaimInUse:
    """One claim that pods use: its volume, and the number of its users by row."""

    __slots__ = ("class_name", "owners", "rows", "volume", "volume_name")

    def __init__(self) -> None:
        self.volume: AttachableVolume | None = None
        self.volume_name = ""
        self.class_name = ""
        self.rows: dict[int, int] = {}
        self.owners: dict[str, PodInfo] = {}
        """Pods that use the claim for an ephemeral volume, and must own it."""


def volume_of_claim(objects: ObjectStores, claim: PersistentVolumeClaim) -> AttachableVolume | None:
    """The volume that counts for a pod with this claim; None if it is not a CSI driver's."""
    name = claim.spec.volume_name
    volume = objects.of(PersistentVolume).get(name) if name else None
    if volume is None:
        return _expected_volume(objects, claim)
    csi = volume.spec.csi
    if csi is not None:
        return attachable(csi.driver, csi.volume_handle) if csi.driver and csi.volume_handle else None
    if plugin_of(volume.spec) not in MIGRATED:
        return None
    try:
        translated = translate_volume(volume)
    except TranslationError:
        return None
    return attachable(translated.driver, translated.handle) if translated.handle else None


def volume_of_inline(volume: Volume) -> AttachableVolume | None:
    """As `volume_of_claim`, for an inline volume. Raises `TranslationError`."""
    if plugin_of(volume) not in MIGRATED:
        return None
    translated = translate_inline(volume)
    return attachable(translated.driver, translated.handle)


def volume_error(objects: ObjectStores, pod: PodInfo, volume: Volume) -> str | None:
    """Why it is unknown which volume a pod uses. A missing claim is not an error here."""
    name = claim_named_by(volume, pod.name)
    if name is None:
        try:
            volume_of_inline(volume)
        except TranslationError as error:
            return f"converting volume({volume.name}) from inline to csi: {error}"
    elif not name:
        return NAMELESS_CLAIM
    elif is_ephemeral(volume):
        claim = objects.of(PersistentVolumeClaim).get(f"{pod.namespace}/{name}")
        if claim is not None and not is_controlled_by_pod(claim, pod.namespace, pod.name, pod.uid):
            return not_controlled_text(claim, pod.namespace, pod.name)
    return None


def _expected_volume(objects: ObjectStores, claim: PersistentVolumeClaim) -> AttachableVolume | None:
    """The volume that the claim's class will provision."""
    class_name = class_of_claim(claim)
    storage_class = objects.of(StorageClass).get(class_name) if class_name else None
    if storage_class is None:
        return None
    driver = storage_class.provisioner
    if driver in DRIVERS:
        if driver not in MIGRATED:
            return None
        driver = DRIVERS[driver]
    return attachable(driver, f"{_UNBOUND_HANDLE}-{claim.key}") if driver else None
