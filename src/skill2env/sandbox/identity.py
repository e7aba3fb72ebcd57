"""Under which user ids a sandbox runs: the three tiers, and how each maps ids.

Host uid 0 is never mapped into a sandbox: a process whose uid is 0 on the host may write kernel settings whatever
its capabilities are. Root therefore runs sandboxes under a subordinate range.
"""

import functools
import os
import pwd
import shutil
import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from skill2env.errors import UserError

TIER_VARIABLE = "SKILL2ENV_SANDBOX_TIER"
RANGE = 65536
DEFAULT_BASE = 100000
FEW = 1000
"""With fewer ids than this, system users of a distribution do not fit and the range is not worth using."""
_PROC = Path("/proc/self")


class Tier(StrEnum):
    """Identity of a sandbox, strongest first."""

    ROOT = "root"
    """Started by root and mapped to a subordinate range: several users inside, none of them a user of the host."""
    SUBUID = "subuid"
    """Started by an ordinary user with newuidmap and a range in /etc/subuid: several users inside."""
    SINGLE = "single-uid"
    """Started by an ordinary user: one uid inside, which looks like root; no separation of agent and root."""


@dataclass(frozen=True, slots=True)
class Identity:
    """How ids map: inside 0 is `root_uid` outside, inside 1.. are `base`.. outside (`count` ids in all)."""

    tier: Tier
    root_uid: int
    root_gid: int
    base: int
    base_gid: int
    count: int

    @property
    def several_users(self) -> bool:
        """True when an agent can be another user than root inside."""
        return self.tier is not Tier.SINGLE

    def outside(self, uid: int) -> int:
        """Host uid of an inside uid."""
        if uid == 0 or self.count == 1:
            return self.root_uid
        return self.base + uid - 1


def subordinate(path: str, user: str, uid: int) -> tuple[int, int] | None:
    """(first, count) of the first range of a user in /etc/subuid or /etc/subgid."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split(":")
        if len(fields) == 3 and fields[0] in (user, str(uid)) and fields[1].isdigit() and fields[2].isdigit():
            return int(fields[1]), int(fields[2])
    return None


def mapped_ids(kind: str) -> int:
    """How many ids from 0 up this process's own user namespace has (``uid`` or ``gid``); a full range outside."""
    end = 0
    try:
        rows = sorted(
            tuple(map(int, line.split())) for line in (_PROC / f"{kind}_map").read_text().splitlines()
        )
    except (OSError, ValueError):
        return 2**32 - 1
    for inside, _, count in rows:
        if inside > end:
            break
        end = max(end, inside + count)
    return end


def helpers_work() -> bool:
    """True when newuidmap and newgidmap are installed and can gain the rights that they need."""
    for tool in ("newuidmap", "newgidmap"):
        path = shutil.which(tool)
        if path is None:
            return False
        status = Path(path).stat()
        if not status.st_mode & stat.S_ISUID or status.st_uid != 0:
            try:
                os.getxattr(path, "security.capability")
            except OSError:
                return False
    return True


def user_name() -> str:
    """Name of the effective user, or its number where it has none."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def subuid_fix() -> str:
    """What root has to do to lift this user from the single-uid tier; the range is one that nobody has yet."""
    first = DEFAULT_BASE
    for path in ("/etc/subuid", "/etc/subgid"):
        try:
            rows = [line.split(":") for line in Path(path).read_text().splitlines()]
        except OSError:
            continue
        ends = (int(row[1]) + int(row[2]) for row in rows if len(row) == 3 and (row[1] + row[2]).isdigit())
        first = max(first, *ends, 0)
    ids = f"{first}-{first + RANGE - 1}"
    return f"sudo apt-get install -y uidmap && sudo usermod --add-subuids {ids} --add-subgids {ids} {user_name()}"


def _root_identity() -> Identity | None:
    """A range that root can use here; None inside a namespace that has too few ids for one."""
    available = min(mapped_ids("uid"), mapped_ids("gid"))
    found = subordinate("/etc/subuid", "root", 0)
    base = found[0] if found and found[1] >= RANGE else DEFAULT_BASE
    count = RANGE
    if base + RANGE > available:  # root of a container whose engine mapped 65536 ids: use its upper part
        base = max(FEW, available - RANGE)
        count = available - base
    return Identity(Tier.ROOT, base, base, base + 1, base + 1, count) if count > FEW else None


def _subuid_identity() -> Identity | None:
    uid, gid, name = os.geteuid(), os.getegid(), user_name()
    users, groups = subordinate("/etc/subuid", name, uid), subordinate("/etc/subgid", name, uid)
    if not users or not groups or not helpers_work():
        return None
    count = min(users[1], groups[1], RANGE - 1) + 1
    return Identity(Tier.SUBUID, uid, gid, users[0], groups[0], count) if count > FEW else None


def _single_identity() -> Identity:
    uid, gid = os.geteuid(), os.getegid()
    return Identity(Tier.SINGLE, uid, gid, uid, gid, 1)


def find_identity(wanted: str = "") -> Identity:
    """The strongest tier that this process can use, or the wanted one.

    Args:
        wanted: name of a tier; empty for the strongest.

    Raises:
        UserError: the tier is unknown or not possible here.
    """
    if wanted and wanted not in list(Tier):
        raise UserError(f"{wanted!r} is no sandbox tier", hint=f"Use one of: {', '.join(Tier)}.")
    if os.geteuid() == 0:
        found = _root_identity()
        if found is None and mapped_ids("uid") == 1:  # "root" of a namespace that somebody made with one uid
            found = _single_identity()
        if found is None or wanted not in ("", found.tier):
            raise UserError(
                f"tier {wanted} cannot be used by root" if wanted else "this user namespace has too few ids",
                hint=f"Unset {TIER_VARIABLE}, or run as an ordinary user.",
            )
        return found
    if wanted == Tier.ROOT:
        raise UserError("tier root needs root", hint=f"Unset {TIER_VARIABLE}.")
    ranged = None if wanted == Tier.SINGLE else _subuid_identity()
    if ranged:
        return ranged
    if wanted == Tier.SUBUID:
        raise UserError(
            "tier subuid needs newuidmap and a range in /etc/subuid and /etc/subgid",
            hint=subuid_fix(),
        )
    return _single_identity()


@functools.cache
def _cached(wanted: str, _euid: int) -> Identity:
    return find_identity(wanted)


def current_identity() -> Identity:
    """The identity of this process's sandboxes: the strongest, or the one that ``SKILL2ENV_SANDBOX_TIER`` names.

    Raises:
        UserError: the named tier is unknown or not possible here.
    """
    return _cached(os.environ.get(TIER_VARIABLE, ""), os.geteuid())
