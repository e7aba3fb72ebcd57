"""Under which user ids a sandbox runs: the three tiers, and how each maps ids.

Host uid 0 is never mapped into a sandbox: a process whose uid is 0 on the host may write kernel settings whatever
its capabilities are. Root therefore runs sandboxes under a subordinate range.
"""

import functools
import os
import pwd
import shutil
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from skill2env.errors import UserError

TIER_VARIABLE = "SKILL2ENV_SANDBOX_TIER"
RANGE = 65536
DEFAULT_BASE = 100000
SUBUID_FIX = "apt-get install uidmap && usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER"
"""What lifts an ordinary user from the single-uid tier."""


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
        return self.root_uid + uid if self.tier is Tier.ROOT else self.base + uid - 1


def _subordinate(path: str, user: str, uid: int) -> tuple[int, int] | None:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split(":")
        if len(fields) == 3 and fields[0] in (user, str(uid)) and fields[1].isdigit() and fields[2].isdigit():
            return int(fields[1]), int(fields[2])
    return None


def _subuid_identity() -> Identity | None:
    uid, gid = os.geteuid(), os.getegid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    users, groups = _subordinate("/etc/subuid", name, uid), _subordinate("/etc/subgid", name, uid)
    if not users or not groups or not shutil.which("newuidmap") or not shutil.which("newgidmap"):
        return None
    count = min(users[1], groups[1], RANGE - 1) + 1
    return Identity(Tier.SUBUID, uid, gid, users[0], groups[0], count) if count > 1000 else None


@functools.cache
def current_identity() -> Identity:
    """The strongest tier that this process can use, or the one forced by ``SKILL2ENV_SANDBOX_TIER``.

    Raises:
        UserError: the forced tier is unknown or not possible here.
    """
    wanted = os.environ.get(TIER_VARIABLE, "")
    if wanted and wanted not in list(Tier):
        raise UserError(f"{TIER_VARIABLE}={wanted} is no tier", hint=f"Use one of: {', '.join(Tier)}.")
    if os.geteuid() == 0:
        if wanted not in ("", Tier.ROOT):
            raise UserError(
                f"tier {wanted} cannot be used by root",
                hint=f"Unset {TIER_VARIABLE}, or run as an ordinary user.",
            )
        found = _subordinate("/etc/subuid", "root", 0)
        base = found[0] if found and found[1] >= RANGE else DEFAULT_BASE
        return Identity(Tier.ROOT, base, base, base + 1, base + 1, RANGE)
    ranged = None if wanted == Tier.SINGLE else _subuid_identity()
    if ranged:
        return ranged
    if wanted == Tier.SUBUID:
        raise UserError(
            "tier subuid needs newuidmap and a range in /etc/subuid and /etc/subgid",
            hint=f"As root: {SUBUID_FIX}",
        )
    uid, gid = os.geteuid(), os.getegid()
    return Identity(Tier.SINGLE, uid, gid, uid, gid, 1)
