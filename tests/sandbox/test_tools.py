"""What probes bring from this machine's mirror: it is checked by apt, kept, and works inside."""

import pytest

from skill2env.sandbox.images import BaseImage
from skill2env.sandbox.session import Sandbox, SandboxSpec
from skill2env.sandbox.tools import clock_library, host_file, locale_archive


@pytest.mark.sandbox
def test_a_host_file_is_named_by_its_content(base: BaseImage) -> None:
    assert host_file("x", b"1") == host_file("x", b"1") != host_file("x", b"2")
    assert host_file("x", b"1").read_bytes() == b"1"


@pytest.mark.sandbox
@pytest.mark.network
def test_the_clock_library_shifts_the_clock(base: BaseImage) -> None:
    with Sandbox(SandboxSpec(layers=(base.rootfs,))) as box:
        box.put(clock_library(), "/usr/lib/shift.so")
        script = "echo '@2031-02-03 04:05:06' > /etc/faketimerc; echo /usr/lib/shift.so > /etc/ld.so.preload"
        assert box.exec(["bash", "-c", script]).return_code == 0
        assert box.exec(["env", "-i", "/usr/bin/date", "+%F"]).stdout == b"2031-02-03\n"


@pytest.mark.sandbox
@pytest.mark.network
def test_a_locale_with_decimal_commas(base: BaseImage) -> None:
    archive = locale_archive("de_DE")
    if archive is None:
        pytest.skip("this machine has no localedef")
    with Sandbox(SandboxSpec(layers=(base.rootfs,))) as box:
        box.put(archive, "/tmp/locale.tar")
        box.exec(["bash", "-c", "mkdir -p /usr/lib/locale && tar -xf /tmp/locale.tar -C /usr/lib/locale"])
        told = box.exec(["bash", "-c", "printf %.1f 1,5"], env={"LC_ALL": "de_DE.UTF-8"})
        assert told.stdout == b"1,5", told
