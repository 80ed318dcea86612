"""Lists the local disks, each once, under names that do not contain a user's name."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

import psutil

ROOT: Final = os.path.abspath(os.sep)
IMAGES: Final = frozenset({"squashfs", "erofs", "cramfs", "iso9660", "udf", "romfs"})
"""Read-only image file systems. They are always full and cannot be written to."""
SYSTEM_VOLUMES: Final = "/System/Volumes/"
"""Where macOS shows the container of `/` a second time, in parts."""


@dataclass(frozen=True, slots=True)
class Mount:
    device: str
    path: str
    file_system: str


@dataclass(frozen=True, slots=True)
class Disk:
    path: str
    total_bytes: int
    free_bytes: int
    used_percent: float

    @property
    def name(self) -> str:
        return name_mount(self.path)


def read_disks() -> list[Disk]:
    """Returns the disks, the main one first. A sleeping disk may take seconds, so call this in a worker thread."""
    mounts = [Mount(p.device, p.mountpoint, p.fstype) for p in psutil.disk_partitions(all=False)]
    chosen = choose_mounts((m for m in mounts if os.path.isdir(m.path)), ROOT)
    disks = [disk for path in dict.fromkeys([ROOT, *chosen]) if (disk := measure(path))]
    return disks if ROOT in chosen else drop_shares(disks)


def measure(path: str) -> Disk | None:
    try:
        usage = psutil.disk_usage(path)
    except OSError:
        return None
    return Disk(path, usage.total, usage.free, usage.percent) if usage.total else None


def choose_mounts(mounts: Iterable[Mount], root: str) -> list[str]:
    """Returns the paths of file systems that hold files, one per device: the root if possible, else the shortest."""
    by_device: dict[str, str] = {}
    for mount in sorted(mounts, key=lambda m: (m.path != root, len(m.path), m.path)):
        if _holds_files(mount):
            by_device.setdefault(_device_of(mount), mount.path)
    return list(by_device.values())


def drop_shares(disks: list[Disk]) -> list[Disk]:
    """Removes the disks that share the first one's device, if the first is an overlay that does not name its device.

    In a container, volumes are mounted from the same disk that the overlay is on. They are recognised by their size.
    """
    return [disk for n, disk in enumerate(disks) if n == 0 or disk.total_bytes != disks[0].total_bytes]


def name_mount(path: str) -> str:
    """Returns the path without a user's name in it."""
    match PurePosixPath(path).parts:
        case ("/", "home" | "Users" as homes, _, *_):
            return f"/{homes}"
        case ("/", "media", _, *labels, label) | ("/", "run", "media", _, *labels, label):
            return "/".join(["/media", *labels, label])
        case _:
            return path


def _holds_files(mount: Mount) -> bool:
    # Windows gives a drive without a disk in it an empty type.
    return (
        mount.file_system not in IMAGES
        and mount.file_system != ""
        and not mount.device.startswith("/dev/loop")
        and not mount.path.startswith(SYSTEM_VOLUMES)
    )


def _device_of(mount: Mount) -> str:
    # The data sets of a ZFS pool ("tank/home") share the pool's space.
    return mount.device.partition("/")[0] if mount.file_system == "zfs" else mount.device
