"""Surroundings that differ from the usual ones in one respect, each with its own proof that it bites in the image."""

import base64
import shlex
import zoneinfo
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.conditions import NOT_APPLICABLE_CODE, Conditions, NotApplicable
from skill2env.sandbox.tools import clock_library, host_file, locale_archive

_SLACK_SEC = 120
_LIBRARY = "/usr/lib/libclock.so.1"
CLOCK_FILE = "/etc/faketimerc"
_PASSAGE = "/var/tmp/.locale.tar"
_ZONE_HOMES = (*zoneinfo.TZPATH, "/usr/share/zoneinfo")
_GIVE_UP = f"exit {NOT_APPLICABLE_CODE}"

_MEMORY_KB = 3_276_800
_MEMORY = f"""\
MemTotal:        {_MEMORY_KB} kB
MemFree:         2097152 kB
MemAvailable:    2621440 kB
Buffers:           65536 kB
Cached:           524288 kB
SwapCached:            0 kB
Active:           393216 kB
Inactive:         262144 kB
SwapTotal:             0 kB
SwapFree:              0 kB
Shmem:              8192 kB
Slab:              65536 kB
"""
_PROCESSOR = """\
processor	: 0
vendor_id	: GenuineOther
cpu family	: 6
model		: 1
model name	: Other Processor at 1.00GHz
cpu MHz		: 1000.000
cache size	: 1024 KB
physical id	: 0
siblings	: 1
core id		: 0
cpu cores	: 1
flags		: fpu

"""
HOST_NAME = "another-machine"
USER_NAME = "somebody"
_HOME_MB = 256
# Appended to a module that every Python program loads from its file, before `os` takes these functions over.
_BACKWARDS = """
import posix as _posix
_listdir, _scandir = _posix.listdir, _posix.scandir
def listdir(path=None):
    return _listdir(path)[::-1]
class _Backwards:
    def __init__(self, entries):
        with entries:
            self._entries = iter(list(entries)[::-1])
    def __iter__(self):
        return self
    def __next__(self):
        return next(self._entries)
    def __enter__(self):
        return self
    def __exit__(self, *_):
        pass
    def close(self):
        self._entries = iter(())
def scandir(path=None):
    return _Backwards(_scandir(path))
_posix.listdir, _posix.scandir = listdir, scandir
"""


def clock(offset_sec: int) -> Conditions:
    """The clock of every program shifted by so many seconds.

    Raises:
        NotApplicable: this machine has no Debian tools to fetch and check the library that shifts it.
        InfraError: the library cannot be downloaded.
    """
    script = f"""
before=$EPOCHSECONDS
[ -n "$before" ] || {{ echo "bash here does not tell the time"; {_GIVE_UP}; }}
echo {offset_sec:+} > {CLOCK_FILE}
chmod 644 {CLOCK_FILE} {_LIBRARY}
echo {_LIBRARY} >> /etc/ld.so.preload
for told in "$(env -i date +%s)" "$(env -i python3 -I -S -c 'import time; print(int(time.time()))')"; do
  off=$((told - before - {offset_sec}))
  [ "$off" -ge -{_SLACK_SEC} ] && [ "$off" -le {_SLACK_SEC} ] || {{ echo "the clock stays"; {_GIVE_UP}; }}
done
"""
    return Conditions(script=script, files={_LIBRARY: str(_had(clock_library))})


def _had[T](fetch: Callable[[], T]) -> T:
    try:
        return fetch()
    except InfraError as error:
        if error.boundary is Boundary.BUILD:
            raise NotApplicable(error.message) from error
        raise


def set_clock(offset_sec: int) -> str:
    """A script that shifts the clock further where `clock` was made already."""
    return f"echo {offset_sec:+} > {CLOCK_FILE}"


def zone(name: str) -> Conditions:
    """Another time zone of the machine; variables of image and task stay.

    Raises:
        NotApplicable: this machine has no data of the zone.
    """
    data = next((path.read_bytes() for home in _ZONE_HOMES if (path := Path(home, name)).is_file()), None)
    if data is None:
        raise NotApplicable(f"this machine has no data of the zone {name}")
    offset = datetime(2026, 1, 15, 12, tzinfo=zoneinfo.ZoneInfo(name)).strftime("%z")
    script = f"""
rm -f /etc/localtime
echo {base64.b64encode(data).decode()} | base64 -d > /etc/localtime
echo {name} > /etc/timezone
[ "$(env -i date -d '2026-01-15 12:00' +%z)" = {offset} ] || {{ echo "the zone cannot be changed here"; {_GIVE_UP}; }}
"""
    return Conditions(script=script)


def locale(language: str) -> Conditions:
    """Another locale as ``LANG``; what image and task set wins.

    Raises:
        NotApplicable: this machine cannot compile the locale, or has no Debian tools to fetch its source.
        InfraError: its source cannot be downloaded.
    """
    archive = _had(partial(locale_archive, language))
    if archive is None:
        raise NotApplicable("this machine cannot compile locales")
    name = f"{language}.UTF-8"
    script = f"""
mkdir -p /usr/lib/locale
tar -xf {_PASSAGE} -C /usr/lib/locale && rm -f {_PASSAGE}
[ "$(bash -c 'printf %.1f 1,5' 2>&1)" = 1,5 ] || {{ echo "the locale does not work here"; {_GIVE_UP}; }}
"""
    return Conditions(script=script, files={_PASSAGE: str(archive)}, env={"LANG": name})


def machine(*, one_core: bool) -> Conditions:
    """Another host name, less memory and another processor; with `one_core` only one of it."""
    proc = {
        "meminfo": str(host_file("meminfo", _MEMORY.encode())),
        "cpuinfo": str(host_file("cpuinfo", _PROCESSOR.encode())),
    }
    return Conditions(hostname=HOST_NAME, proc=proc, visible_cpus=1 if one_core else 0)


def another_user(user: str) -> Conditions:
    """Another name for a user, found before its own, and another home that holds the same files.

    Its own name stays known, because tasks and images name their users by it; a ``HOME`` that image or task set wins.

    Args:
        user: name or number, as task.toml has it.
    """
    home = f"/home/{USER_NAME}"
    script = f"""
name={shlex.quote(user.partition(":")[0])} entry= number= group=0 old=
while IFS=: read -r a _ c d _ f _; do
  if [ "$a" = "$name" ] || [ "$c" = "$name" ]; then entry=$a number=$c group=$d old=$f; break; fi
done < /etc/passwd
if [ -z "$entry" ]; then
  case "$name" in *[!0-9]*) exit 0;; esac  # a container in which nobody is called so: the verifier's own
  number=$name
fi
mkdir -p /home
if [ -d "$old" ] && [ "$old" != / ]; then
  [ "$(du -sm "$old" | cut -f1)" -le {_HOME_MB} ] || {{ echo "the home folder is too large to copy"; {_GIVE_UP}; }}
  cp -a "$old" {home}
else
  mkdir -p {home} && chown "$number:$group" {home}
fi
{{
  printf '%s:x:%s:%s::%s:/bin/bash\n' {USER_NAME} "$number" "$group" {home}
  while IFS= read -r line; do
    IFS=: read -r a b c d e _ g <<< "$line"
    [ -z "$entry" ] || [ "$a" != "$entry" ] || line="$a:$b:$c:$d:$e:{home}:$g"
    printf '%s\n' "$line"
  done < /etc/passwd
}} > /etc/passwd.other
cat /etc/passwd.other > /etc/passwd
rm -f /etc/passwd.other
[ "$(id -un "$number")" = {USER_NAME} ] || {{ echo "the user keeps its name"; {_GIVE_UP}; }}
[ -z "$entry" ] || [ "$(eval "echo ~$entry")" = {home} ] || {{ echo "the home stays where it is"; {_GIVE_UP}; }}
"""
    return Conditions(script=script)


def tests_read_only(folder: Path) -> Conditions:
    """The tests mounted read-only, as some consumers do.

    Args:
        folder: see `skill2env.sandbox.tools.shared_folder`.
    """
    return Conditions(folders={"/tests": str(folder)})


def broken_package_tools() -> Conditions:
    """Package managers that fail whatever they are asked."""
    names = "apt apt-get apt-cache aptitude dpkg pip pip3 apk dnf yum"
    script = f"""
found=
for name in {names}; do
  for folder in /usr/local/bin /usr/bin /bin /sbin /usr/sbin; do
    [ -x "$folder/$name" ] || continue
    rm -f "$folder/$name"
    printf '#!/bin/sh\\necho "%s: broken" >&2\\nexit 100\\n' "$name" > "$folder/$name"
    chmod 755 "$folder/$name"
    found=1
  done
done
[ -n "$found" ] || {{ echo "the image has no package tools"; {_GIVE_UP}; }}
"""
    return Conditions(script=script)


def hash_seed(seed: int) -> Conditions:
    """Another seed of Python's hashes, where a script hands its variables on."""
    return Conditions(env={"PYTHONHASHSEED": str(seed)})


def folder_order() -> Conditions:
    """Folders listed backwards to every Python program, isolated ones too; others sort what they list, mostly."""
    script = f"""
read -r -d '' change <<'EOF'
{_BACKWARDS}
EOF
list() {{ env -i "$1" -I -S -c 'import os; print(os.listdir("/etc"), [e.name for e in os.scandir("/etc")])'; }}
found=
for python in /usr/bin/python3 "$(command -v python3)" /usr/local/bin/python3; do
  [ -x "$python" ] || continue
  before=$(list "$python")
  file=$(env -i "$python" -I -S -c 'import encodings; print(encodings.__file__)')
  grep -q _Backwards "$file" || printf '%s\\n' "$change" >> "$file"
  after=$(list "$python")
  [ -z "$after" ] || [ "$before" = "$after" ] || found=1
done
[ -n "$found" ] || {{ echo "there is no Python whose lists of folders can be changed"; {_GIVE_UP}; }}
"""
    return Conditions(script=script)


def together(*parts: Conditions) -> Conditions:
    """Several at once."""
    whole = Conditions()
    for part in parts:
        whole = Conditions(
            script=whole.script + part.script,
            files={**whole.files, **part.files},
            env={**whole.env, **part.env},
            visible_cpus=part.visible_cpus or whole.visible_cpus,
            hostname=part.hostname or whole.hostname,
            proc={**whole.proc, **part.proc},
            folders={**whole.folders, **part.folders},
        )
    return whole
