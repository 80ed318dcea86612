import json
from pathlib import Path

import psutil
import pytest

from antiphon.authoring.testing import make_context
from antiphon.toolkit.get_disk_space import handler
from antiphon.toolkit.get_disk_space.disks import ROOT, Disk, Mount, choose_mounts, drop_shares, measure, name_mount
from antiphon.toolkit.get_disk_space.handler import execute, report, speak, speak_size
from antiphon.tools.arguments import compile_schema
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import FlyoutType

SCHEMA = json.loads((Path(handler.__file__).parent / "schema.json").read_text())
GB = 2**30
MAIN = Disk("/", 252 * GB, 53 * GB, 77.6)
BOOT = Disk("/boot/efi", GB // 2, GB // 4, 50.0)
ARCHIVE = Disk("/archive", 1863 * GB, 900 * GB, 49.2)
STICK = Disk("/media/alice/stick", 30 * GB, 100 * GB // 1024, 99.7)


@pytest.mark.real_time
async def test_the_main_disk_comes_first_with_its_real_size() -> None:
    main = (await execute({}, make_context())).data["disks"][0]
    assert main["name"] == ROOT
    assert main["total_gb"] == pytest.approx(psutil.disk_usage(ROOT).total / GB, abs=0.1)


@pytest.mark.real_time
async def test_the_data_matches_the_output_schema() -> None:
    result = await execute({}, make_context())
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


@pytest.mark.real_time
async def test_the_table_is_shown_in_the_terminal() -> None:
    flyout = (await execute({}, make_context())).flyout
    assert flyout is not None
    assert flyout.flyout_type is FlyoutType.TERMINAL
    assert flyout.content.startswith("Disk")


@pytest.mark.real_time
async def test_unreadable_disks_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler, "read_disks", list)
    error = (await execute({}, make_context())).error
    assert error is not None
    assert error.type is ErrorType.PERMANENT
    assert not error.retryable


def test_a_missing_path_is_omitted(tmp_path: Path) -> None:
    assert measure(str(tmp_path / "gone")) is None


def test_a_file_system_without_a_size_is_not_a_disk() -> None:
    assert measure("/proc") is None


def test_one_disk_is_described_in_one_sentence() -> None:
    assert speak([MAIN]) == "You have 53 gigabytes free of 252."


def test_the_boot_partition_is_not_mentioned() -> None:
    assert speak([MAIN, BOOT]) == "You have 53 gigabytes free of 252."


def test_two_disks_are_both_described_each_in_its_own_unit() -> None:
    assert speak([MAIN, ARCHIVE]) == (
        "The main disk has 53 gigabytes free of 252, and the other one 900 gigabytes free of 1.8 terabytes."
    )


def test_more_disks_are_summarized() -> None:
    assert speak([MAIN, BOOT, ARCHIVE, ARCHIVE]) == (
        "The main disk has 53 gigabytes free of 252, and the 2 others have 1.8 terabytes free in all."
    )


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [
        (0, "0 megabytes"),
        (2**20, "1 megabyte"),
        (100 * 2**20, "100 megabytes"),
        (GB, "1 gigabyte"),
        (5 * GB // 2, "2.5 gigabytes"),
        (int(9.97 * GB), "10 gigabytes"),
        (999 * GB, "999 gigabytes"),
        (1000 * GB, "1 terabyte"),
        (1863 * GB, "1.8 terabytes"),
        (20 * 1024 * GB, "20 terabytes"),
    ],
)
def test_a_size_is_spoken_in_a_suitable_unit(size_bytes: int, words: str) -> None:
    assert speak_size(size_bytes) == words


def test_the_table_is_aligned() -> None:
    assert report([MAIN, ARCHIVE]) == (
        "Disk             Size         Free    Used\n"
        "/            252.0 GB      53.0 GB    78 %\n"
        "/archive   1,863.0 GB     900.0 GB    49 %\n"
    )


def test_snaps_loop_devices_and_optical_discs_are_not_disks() -> None:
    mounts = [
        Mount("/dev/sda2", "/", "ext4"),
        Mount("/dev/loop3", "/snap/core22/1748", "squashfs"),
        Mount("/dev/loop9", "/mnt/image", "ext4"),
        Mount("/dev/sr0", "/media/cdrom", "iso9660"),
        Mount("D:\\", "D:\\", ""),
    ]
    assert choose_mounts(mounts, "/") == ["/"]


def test_a_disk_mounted_twice_is_listed_once() -> None:
    mounts = [
        Mount("/dev/sda2", "/var/lib/docker/volumes", "btrfs"),
        Mount("/dev/sda2", "/home", "btrfs"),
        Mount("/dev/sda2", "/", "btrfs"),
        Mount("/dev/sdb1", "/srv/export/data", "xfs"),
        Mount("/dev/sdb1", "/data", "xfs"),
    ]
    assert choose_mounts(mounts, "/") == ["/", "/data"]


def test_the_data_sets_of_a_pool_are_one_disk() -> None:
    mounts = [Mount("tank/root", "/", "zfs"), Mount("tank/home", "/home", "zfs"), Mount("vault", "/vault", "zfs")]
    assert choose_mounts(mounts, "/") == ["/", "/vault"]


def test_identical_disks_are_listed_separately() -> None:
    mounts = [Mount("/dev/sda1", "/", "ext4"), Mount("/dev/sdb1", "/a", "ext4"), Mount("/dev/sdc1", "/b", "ext4")]
    assert choose_mounts(mounts, "/") == ["/", "/a", "/b"]


def test_the_parts_of_a_mac_are_one_disk() -> None:
    mounts = [Mount("/dev/disk3s1s1", "/", "apfs"), Mount("/dev/disk3s5", "/System/Volumes/Data", "apfs")]
    assert choose_mounts(mounts, "/") == ["/"]


def test_a_volume_on_the_disk_below_a_container_overlay_is_listed_once() -> None:
    overlay, volume = Disk("/", 252 * GB, 53 * GB, 77.6), Disk("/data", 252 * GB, 53 * GB - 4096, 77.6)
    assert drop_shares([overlay, volume, ARCHIVE]) == [overlay, ARCHIVE]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/", "/"),
        ("/home", "/home"),
        ("/home/alice", "/home"),
        ("/Users/alice/Vault", "/Users"),
        ("/media/alice/stick", "/media/stick"),
        ("/run/media/alice/stick", "/media/stick"),
        ("/media/archive", "/media/archive"),
        ("/Volumes/Archive", "/Volumes/Archive"),
        ("/srv/data", "/srv/data"),
        ("C:\\", "C:\\"),
    ],
)
def test_a_disk_is_named_without_the_name_of_a_user(path: str, name: str) -> None:
    assert name_mount(path) == name


def test_no_user_is_named_in_the_table() -> None:
    assert "alice" not in report([MAIN, STICK])
