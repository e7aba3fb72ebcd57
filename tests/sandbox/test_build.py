"""Dockerfiles built for real: what ends up in the image, what is cached, and whose fault a failure is."""

import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox import layers, mirrors
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.images import BaseImage, BuildFailed, BuiltImage, build_image, resolve_image
from skill2env.sandbox.launch import bubblewrap
from skill2env.sandbox.scratch import remove_tree
from skill2env.sandbox.session import Sandbox, SandboxSpec
from skill2env.store.folders import CACHE_VARIABLE, cache_home

pytestmark = pytest.mark.sandbox


def use_cache(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `home` the cache, for everything but the bases: they are borrowed from the real one."""
    home.chmod(0o755)
    (home / "bases").symlink_to(cache_home() / "bases")
    monkeypatch.setenv(CACHE_VARIABLE, str(home))
    bubblewrap.cache_clear()


@pytest.fixture(scope="module")
def test_cache(base_image: BaseImage) -> Iterator[Path]:
    home = Path(tempfile.mkdtemp(prefix="skill2env-test-", dir="/var/tmp"))
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_cache(home, monkeypatch)
        yield home
        (home / "bases").unlink()
        remove_tree(home, current_identity())
    bubblewrap.cache_clear()


@pytest.fixture(autouse=True)
def own_layers(test_cache: Path) -> Iterator[Path]:
    yield test_cache
    remove_tree(test_cache / "layers", current_identity())


@pytest.fixture
def context(tmp_path: Path) -> Path:
    folder = tmp_path / "context"
    folder.mkdir()
    return folder


def build(context: Path, text: str, *, timeout_sec: float = 600) -> BuiltImage:
    (context / "Dockerfile").write_text("FROM debian-bookworm\n" + text)
    return build_image(context, timeout_sec=timeout_sec)


def look(image: BuiltImage, script: str) -> str:
    with Sandbox(SandboxSpec(layers=image.layers)) as box:
        done = box.exec(["/bin/sh", "-c", script], merge_stderr=True)
    assert done.return_code == 0, done.stdout.decode()
    return done.stdout.decode().strip()


def built_layers(home: Path) -> list[Path]:
    return sorted(path.parent for path in home.glob("layers/*/*/layer.json"))


def make_archive(kind: str, files: dict[str, bytes], *, uid: int = 0) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{kind}") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.uid, info.gid, info.mode, info.mtime = len(data), uid, uid, 0o640, 1_000_000_000
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


# ---------------------------------------------------------------------------------------------- what is in the image


def test_commands_see_environment_folder_and_earlier_files(context: Path) -> None:
    (context / "in.txt").write_text("hello\n")
    image = build(
        context,
        """
ARG GREETING=hi
ENV NAME="the world"
WORKDIR /srv/app
COPY in.txt .
RUN echo "$GREETING $NAME from $(pwd)" > out.txt && cat in.txt >> out.txt
RUN <<EOF
set -e
echo "$HOME $PATH" >> out.txt
EOF
RUN ["sh", "-c", "rm in.txt"]
WORKDIR sub
""",
    )
    assert look(image, "cat /srv/app/out.txt; ls /srv/app").splitlines() == [
        "hi the world from /srv/app",
        "hello",
        "/root /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "out.txt",
        "sub",
    ]
    assert image.config.workdir == "/srv/app/sub"
    assert dict(image.config.env)["NAME"] == "the world"
    assert "GREETING" not in image.config.env


STAGES = """FROM debian-bookworm AS tools
RUN mkdir -p /out/sub && echo built > /out/program && chmod 4755 /out/program && ln -s program /out/link \\
 && echo x > /out/.hidden && echo y > /out/sub/y && chown -R 33:33 /out/sub && ln -s /out/program /start
FROM debian-bookworm AS unused
RUN false
FROM tools AS more
RUN echo more > /out/more
FROM debian-bookworm
COPY --from=tools /out/program /start /bin2/
COPY --from=tools /out/ /all
COPY --from=more --chown=5:6 --chmod=0700 /out/m* /renamed
COPY --from=debian-bookworm /etc/debian_version /etc/issue /base/
"""


def test_stages_copy_from_each_other_and_unused_ones_are_not_built(context: Path) -> None:
    (context / "Dockerfile").write_text(STAGES)
    image = build_image(context)
    show = "find /bin2 /all /renamed /base -printf '%p %y %m %U:%G %l\\n' | sort"
    several = current_identity().several_users
    owner, chosen = ("33:33", "5:6") if several else ("0:0", "0:0")
    assert [line.rstrip() for line in look(image, show).splitlines()] == [
        "/all d 755 0:0", "/all/.hidden f 644 0:0", "/all/link l 777 0:0 program", "/all/program f 4755 0:0",
        f"/all/sub d 755 {owner}", f"/all/sub/y f 644 {owner}", "/base d 755 0:0",
        "/base/debian_version f 644 0:0", "/base/issue f 644 0:0", "/bin2 d 755 0:0", "/bin2/program f 4755 0:0",
        "/bin2/start f 4755 0:0", f"/renamed f 700 {chosen}",
    ]  # fmt: skip
    assert look(image, "ls /out 2>&1 || true").startswith("ls: cannot access")


def test_a_changed_stage_changes_what_is_copied_from_it(context: Path) -> None:
    for text in ("one", "two"):
        (context / "Dockerfile").write_text(
            f"FROM debian-bookworm AS a\nRUN echo {text} > /x\nFROM debian-bookworm\nCOPY --from=a /x /x\n"
        )
        assert look(build_image(context), "cat /x") == text


@pytest.mark.parametrize("kind", ["", "gz", "bz2", "xz"])
def test_add_unpacks_archives(context: Path, kind: str) -> None:
    (context / "data").write_bytes(make_archive(kind, {"a/b": b"one", "c": b"two"}, uid=33))
    (context / "plain.gz").write_bytes(b"\x1f\x8b no archive")
    image = build(context, "ADD data plain.gz /x/\nADD --chown=7:8 data /y\nCOPY data /copied\n")
    several = current_identity().several_users
    owners = ["33:33", "33:33"] if several else ["0:0", "0:0"]
    assert look(image, "cat /x/a/b /x/c; stat -c ' %Y' /x/plain.gz; test -f /copied") == "onetwo 946684800"
    assert look(image, "stat -c '%u:%g %a %Y' /x/c /y/c").splitlines() == [
        f"{owner} 640 1000000000" for owner in owners
    ]


def test_mounted_folders_are_empty_and_left_out_of_the_layer(context: Path) -> None:
    image = build(
        context,
        "RUN mkdir /cache && echo kept > /cache/below\n"
        "RUN --mount=type=cache,target=/cache --mount=type=tmpfs,target=/new ls -A /cache > /seen "
        "&& echo gone | tee /cache/file /new/file\n"
        "RUN ls -A /cache /new > /after\n",
    )
    assert look(image, "cat /seen; ls -A /cache /new") == "/cache:\nbelow\n\n/new:"


def test_a_user_with_a_group(context: Path) -> None:
    if not current_identity().several_users:
        pytest.skip("one uid")
    image = build(
        context, "USER games:audio\nRUN id -nu > /tmp/who && id -ng >> /tmp/who && id -nG >> /tmp/who\n"
    )
    assert look(image, "cat /tmp/who").split() == ["games", "audio", "audio"]
    assert image.config.user == "games:audio"


def test_modes_links_and_times_of_copied_files(context: Path) -> None:
    for name, mode in (("app/run.sh", 0o755), ("app/conf/secret", 0o600), ("app/plain", 0o644)):
        (context / name).parent.mkdir(parents=True, exist_ok=True)
        (context / name).write_text(name)
        (context / name).chmod(mode)
    (context / "app").chmod(0o750)
    (context / "app/link").symlink_to("conf/secret")
    (context / "app/away").symlink_to("/etc/hostname-of-nobody")
    os.mkfifo(context / "app/pipe")
    image = build(context, "COPY app /opt/app\n")
    listing = look(image, "cd /opt && find app -mindepth 1 -printf '%P %M %u %T@ %l\\n'")
    assert look(image, "stat -c %a /opt/app") == "755", "as with engines, whatever the mode in the context"
    assert sorted(line.rstrip() for line in listing.splitlines()) == [
        "away lrwxrwxrwx root 946684800.0000000000 /etc/hostname-of-nobody",
        "conf drwxr-xr-x root 946684800.0000000000",
        "conf/secret -rw------- root 946684800.0000000000",
        "link lrwxrwxrwx root 946684800.0000000000 conf/secret",
        "plain -rw-r--r-- root 946684800.0000000000",
        "run.sh -rwxr-xr-x root 946684800.0000000000",
    ]


def test_where_a_copied_file_goes(context: Path) -> None:
    (context / "d").mkdir()
    for name in ("a", "b", "d/c"):
        (context / name).write_text(name)
    image = build(
        context,
        "COPY a /new/name\nCOPY a /into/folder/\nCOPY a b /many/\nCOPY [ab] /glob/\nCOPY a /tmp\nCOPY d /tmp\n"
        "COPY d/ /deep/er\nCOPY a /lib/through-the-link\nCOPY a d /mixed/\nCOPY <<x /text\nline\nx\nADD a /added\n",
    )
    told = look(
        image,
        "cat /new/name /into/folder/a /many/a /many/b /glob/b /tmp/a /tmp/c /deep/er/c /usr/lib/through-the-link"
        " /mixed/a /mixed/c /text /added; test -L /lib",
    )
    assert told.replace("\n", "") == "aaabbad/cd/caad/clinea"


def test_owner_of_copied_files(context: Path) -> None:
    if not current_identity().several_users:
        pytest.skip("one uid: there are no other owners")
    (context / "f").write_text("x")
    image = build(
        context,
        """
RUN useradd -u 1500 -U agent && groupadd -g 1600 crew
COPY --chown=agent f /a/b/
COPY --chown=agent:crew f /g
COPY --chown=7:8 --chmod=4711 f /n
COPY --chown=9 f /m
USER agent
COPY f /r
RUN id -un > /tmp/who; echo $HOME >> /tmp/who
""",
    )
    assert look(image, "stat -c '%u:%g %a' /a /a/b /a/b/f /g /n /m /r; cat /tmp/who").splitlines() == [
        "1500:1500 755", "1500:1500 755", "1500:1500 644", "1500:1600 644", "7:8 4711", "9:9 644", "0:0 644",
        "agent", "/home/agent",
    ]  # fmt: skip
    assert image.config.user == "agent"


def test_deleted_and_replaced_files_stay_so(context: Path) -> None:
    image = build(
        context,
        "RUN rm /etc/debian_version && rm -rf /usr/share/doc && mkdir /usr/share/doc && echo new > /usr/share/doc/x\n"
        "RUN mkdir /d && touch /d/one\nRUN rm -r /d && mkdir /d && touch /d/two\n",
    )
    assert look(image, "ls /etc/debian_version 2>&1 | wc -l; ls /usr/share/doc /d").split() == [
        "1", "/d:", "two", "/usr/share/doc:", "x",
    ]  # fmt: skip
    assert "No such file" in look(image, "ls /etc/debian_version 2>&1 || true")


def test_nothing_of_the_builder_stays_in_a_layer(context: Path, own_layers: Path) -> None:
    build(context, "RUN env > /env.txt; cat $APT_CONFIG > /dev/null; true\n")
    (layer,) = built_layers(own_layers)
    found = sorted(str(path.relative_to(layer / "fs")) for path in (layer / "fs").rglob("*"))
    assert found == ["env.txt"], "no mount points, no sources, no sockets"


def test_special_permissions_survive(context: Path) -> None:
    image = build(context, "RUN touch /s && chmod 6755 /s && mkdir /t && chmod 1777 /t\n")
    assert look(image, "stat -c %a /s /t /tmp").split() == ["6755", "1777", "1777"]


# ---------------------------------------------------------------------------------------------- cache


def test_a_second_build_runs_nothing(context: Path, own_layers: Path) -> None:
    (context / "f").write_text("1")
    text = "RUN date +%s%N > /first\nCOPY f /f\nRUN date +%s%N > /second\n"
    first = build(context, text)
    started = time.monotonic()
    again = build(context, text)
    assert time.monotonic() - started < 0.5
    assert again == first
    assert len(built_layers(own_layers)) == 3


def test_a_change_builds_from_there_on(context: Path, own_layers: Path) -> None:
    (context / "f").write_text("1")
    text = "RUN date +%s%N > /first\nCOPY f /f\nRUN date +%s%N > /second\n"
    before = build(context, text)
    (context / "f").write_text("2")
    after = build(context, text)
    assert after.key != before.key
    assert after.layers[:2] == before.layers[:2]
    assert not set(after.layers[2:]) & set(before.layers[2:])
    (context / "f").write_text("1")
    (context / "f").touch()
    assert build(context, text) == before


def test_settings_that_touch_no_files_change_the_key_only(context: Path) -> None:
    first = build(context, "RUN true\nCMD a\nENV LATER=1\n")
    second = build(context, "RUN true\nCMD a\nENV LATER=2\n")
    assert first.layers == second.layers
    assert first.key != second.key


def test_many_steps_fit_into_one_overlay(context: Path) -> None:
    image = build(context, "".join(f"RUN echo {n} >> /numbers\n" for n in range(40)))
    assert look(image, "wc -l < /numbers; tail -1 /numbers").split() == ["40", "39"]


BUILD = """
import sys
from pathlib import Path
from skill2env.sandbox.images import build_image
print(build_image(Path(sys.argv[1])).layers[-1])
"""


def start_build(context: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", BUILD, str(context)], stdout=subprocess.PIPE, text=True)


def wait_for(condition: Callable[[], object], timeout_sec: float = 30) -> None:
    end = time.monotonic() + timeout_sec
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_two_processes_build_a_layer_once(context: Path) -> None:
    (context / "Dockerfile").write_text("FROM debian-bookworm\nRUN sleep 0.5; date +%s%N > /when\n")
    processes = [start_build(context) for _ in range(2)]
    told = {process.communicate(timeout=60)[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0]
    assert len(told) == 1


def test_a_killed_build_leaves_nothing_that_counts(context: Path, own_layers: Path) -> None:
    text = "RUN test -e /tmp/quick || sleep 60\n"
    (context / "Dockerfile").write_text("FROM debian-bookworm\nRUN echo started > /x; sleep 60\n")
    process = start_build(context)
    wait_for(lambda: list(own_layers.glob("layers/*/building-*/fs/x")))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert built_layers(own_layers) == []
    assert layers.sweep_unfinished(current_identity()) == 1
    assert list(own_layers.glob("layers/*/building-*")) == []
    with pytest.raises(InfraError, match="ran out of time"):
        build(context, text, timeout_sec=1)


def test_a_layer_without_its_files_is_built_again(context: Path, own_layers: Path) -> None:
    text = "RUN date +%s%N > /first\nRUN echo two > /second\n"
    before = build(context, text)
    shutil.rmtree(before.layers[1])
    again = build(context, text)
    assert again.layers == before.layers
    assert look(again, "cat /second; test -s /first && echo built") == "two\nbuilt"
    assert len(built_layers(own_layers)) == 2


# ---------------------------------------------------------------------------------------------- whose fault


def test_a_failing_command_is_the_dockerfiles_fault(context: Path, own_layers: Path) -> None:
    with pytest.raises(BuildFailed, match="exit code 3") as caught:
        build(context, "RUN echo before\nRUN echo oops >&2; exit 3\n")
    assert caught.value.step == "line 3: RUN echo oops >&2; exit 3"
    assert caught.value.exit_code == 3
    assert "oops" in caught.value.log
    assert len(built_layers(own_layers)) == 1, "what was built before the failure is kept"
    assert list(own_layers.glob("layers/*/building-*")) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("COPY nope /x\n", "nope: no such file"),
        ("COPY ../x /x\n", "outside of the build context"),
        ("COPY f /etc/passwd/x\n", "passwd"),
        ("COPY d /etc/passwd\n", "is a file in the image"),
        ("COPY --chown=nobody-here f /x\n", "no such user or group"),
        ("COPY --chown=root:nobody-here f /x\n", "no such user or group"),
        ("COPY [fg] /x\n", "must be a folder"),
        ("ADD a.tar.zst /x/\n", "needs docker: ADD of a zstd archive at line 2"),
        ("ADD cut.tar.gz /x/\n", "the archive is damaged"),
        ("FROM debian-bookworm AS b\nCOPY --from=0 /no/such /x\n", "/no/such: no such file in the stage"),
        ("FROM debian-bookworm AS b\nCOPY --from=0 /etc/hostnam? /x\n", "no such file in the stage"),
        ("WORKDIR /etc/passwd\n", "passwd"),
        ('RUN ["/no/such/program"]\n', "/no/such/program"),
        ("RUN not-a-command\n", "not found"),
        ("USER ghost\nRUN id\n", "ghost"),
    ],
)
def test_what_a_dockerfile_can_do_wrong(context: Path, text: str, message: str) -> None:
    for name in ("f", "g", "d/x"):
        (context / name).parent.mkdir(exist_ok=True)
        (context / name).write_text("x")
    (context / "a.tar.zst").write_bytes(b"\x28\xb5\x2f\xfd" + b"x" * 20)
    (context / "cut.tar.gz").write_bytes(make_archive("gz", {"big": b"x" * 4_000_000})[:3000])
    if "USER" in text and not current_identity().several_users:
        pytest.skip("one uid: another user is refused before anything is looked up")
    with pytest.raises(BuildFailed) as caught:
        build(context, text)
    assert message in str(caught.value) + caught.value.log


def test_a_missing_source_fails_before_anything_runs(context: Path, own_layers: Path) -> None:
    with pytest.raises(BuildFailed):
        build(context, "RUN sleep 30\nCOPY nope /x\n")
    assert built_layers(own_layers) == []


def test_running_out_of_time_is_no_verdict(context: Path) -> None:
    with pytest.raises(InfraError, match="ran out of time at line 2") as caught:
        build(context, "RUN sleep 60\n", timeout_sec=0.5)
    assert caught.value.boundary is Boundary.BUILD
    assert caught.value.transient


def test_a_dead_mirror_is_no_verdict(context: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(mirrors.MIRROR_VARIABLE, "http://127.0.0.2:9/debian")
    mirrors.debian_mirror.cache_clear()
    try:
        with pytest.raises(InfraError, match="could not be reached") as caught:
            build(context, "RUN apt-get -o Acquire::Retries=0 update\n")
    finally:
        mirrors.debian_mirror.cache_clear()
    assert caught.value.boundary is Boundary.NETWORK


FETCH = "RUN python3 -c \"import urllib.request as u; u.urlopen('http://example.invalid/x')\"\n"


def test_other_hosts_are_out_of_reach(context: Path, own_layers: Path) -> None:
    with pytest.raises(BuildFailed, match="403") as caught:
        build(context, FETCH)
    assert "example.invalid" in caught.value.hint


def test_no_network_when_the_command_says_so(context: Path) -> None:
    image = build(context, "RUN --network=none env > /env; true\n")
    told = look(image, "cat /env")
    assert "127.0.0.1" not in told
    assert "APT_CONFIG" not in told


def test_a_full_disk_is_no_verdict(
    context: Path, small_disk: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = small_disk("size=40m,mode=755")
    for folder in disk.parents:  # the mapped user must be able to walk there
        if folder.name.startswith(("pytest-", "popen-", "test_")):
            folder.chmod(0o711)
    use_cache(disk, monkeypatch)
    try:
        with pytest.raises(InfraError) as caught:
            build(context, "RUN dd if=/dev/zero of=/big bs=1M count=500\n")
    finally:
        bubblewrap.cache_clear()
    assert caught.value.boundary is Boundary.STORAGE


# ---------------------------------------------------------------------------------------------- images


def test_the_base_alone(base_image: BaseImage) -> None:
    image = resolve_image(base_image.reference)
    assert [layer.resolve() for layer in image.layers] == [base_image.rootfs]
    assert (
        look(image, "python3 -c 'import ssl, sqlite3, ctypes; print(1)'; which tmux ps bash").split()[0]
        == "1"
    )


def test_an_image_says_which_base_it_really_stands_on(context: Path, base_image: BaseImage) -> None:
    other = "localhost:5000/skill2env/debian-bookworm@sha256:" + "0" * 64
    (context / "Dockerfile").write_text(f"FROM {other}\n")
    assert build_image(context).base.digest == base_image.digest


def test_a_base_of_another_day_is_used_where_it_still_is(context: Path, base_image: BaseImage) -> None:
    older = "sha256:" + "a" * 64
    home = base_image.rootfs.parent.parent
    folder = home / base_image.rootfs.parent.name.replace(base_image.digest[7:23], "a" * 16)
    folder.mkdir()
    try:
        (folder / "digest").write_text(older)
        (folder / "rootfs").symlink_to(base_image.rootfs)
        (context / "Dockerfile").write_text(f"FROM registry.example/skill2env/debian-bookworm@{older}\n")
        image = build_image(context)
        assert image.base.digest == older
        (folder / "digest").write_text(older.replace("a", "b"))
        assert build_image(context).base.digest == base_image.digest
    finally:
        remove_tree(folder, current_identity())


def test_an_unknown_base_is_no_verdict(context: Path) -> None:
    (context / "Dockerfile").write_text("FROM quay.example/strange:1\n")
    with pytest.raises(InfraError, match="not in the catalog") as caught:
        build_image(context)
    assert "--image-map quay.example/strange:1=debian-bookworm" in caught.value.hint
    assert not caught.value.transient
    image = build_image(context, image_map={"quay.example/strange:1": "debian-bookworm"})
    assert image.base.name == "debian-bookworm"


@pytest.mark.parametrize("kind", ["missing", "outside", "binary", "folder"])
def test_dockerfiles_that_cannot_be_read(context: Path, kind: str) -> None:
    path = context / "Dockerfile"
    if kind == "outside":
        (context.parent / "real").write_text("FROM debian-bookworm\n")
        path.symlink_to("../real")
    elif kind == "binary":
        path.write_bytes(b"FROM \xff\xfe\n")
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(BuildFailed, match="Dockerfile"):
        build_image(context)
