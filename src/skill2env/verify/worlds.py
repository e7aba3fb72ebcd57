"""Surroundings that differ from the usual ones in one respect, each with its own proof that it bites in the image."""

import base64
import zoneinfo
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.conditions import NOT_APPLICABLE_CODE, Conditions, NotApplicable
from skill2env.sandbox.tools import clock_library, host_file, locale_archive

DAY_SEC = 86_400
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
_WEEK = ("saturday", "sunday", "monday", "tuesday", "wednesday", "thursday", "friday")
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
        )
    return whole


def days_ahead(today: date) -> dict[str, int]:
    """Days by which to move the clock: a week of them, and the days on which calendars go wrong.

    Args:
        today: in UTC.

    Returns:
        Name of the day to its distance; the same names in the same order whatever day it is.
    """
    found = {(today + timedelta(number)).strftime("%A").lower(): number for number in range(1, 8)}
    found = {name: found[name] for name in _WEEK}
    leap = next(year for year in range(today.year, today.year + 9) if _has_leap_day(year, today))
    special = {
        "next-year": today + timedelta(365),
        "month-end": _month_end(today + timedelta(1)),
        "year-end": date(today.year + (today >= date(today.year, 12, 31)), 12, 31),
        "new-year": date(today.year + 1, 1, 1),
        "leap-day": date(leap, 2, 29),
        "clocks-forward": _last_sunday(today, 3),
        "clocks-back": _last_sunday(today, 10),
    }
    return found | {name: (day - today).days for name, day in special.items()}


def saturday_next_year(today: date) -> int:
    """Days to a Saturday about a year ahead."""
    return 365 + (5 - (today + timedelta(365)).weekday()) % 7


def today() -> date:
    """The date in UTC: probes move the clock away from it."""
    return datetime.now(UTC).date()


def _month_end(day: date) -> date:
    return (day.replace(day=28) + timedelta(4)).replace(day=1) - timedelta(1)


def _has_leap_day(year: int, after: date) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) and date(year, 2, 29) > after


def _last_sunday(after: date, month: int) -> date:
    for year in (after.year, after.year + 1):
        last = date(year, month, 31)
        last -= timedelta((last.weekday() + 1) % 7)
        if last > after:
            return last
    raise AssertionError("one of two years has it")
