"""How much of a bundle is taken. Everything beyond is refused with a diagnostic, never in silence."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IngestLimits:
    """Bounds of one skill. The largest of 96,854 public ones has 31 MB and 1,965 files."""

    file_bytes: int = 32 * 2**20
    total_bytes: int = 128 * 2**20
    """Of all files that are taken; counted in the order of their paths, the entry file first."""
    files: int = 5_000
    folders: int = 5_000
    depth: int = 24
    """Folders on the way to a file."""
    entry_bytes: int = 4 * 2**20
    """How much of the entry file is read as text."""
    scanned_file_bytes: int = 256 * 2**10
    """Text files up to this size are searched for secrets, lures and the like."""
    scanned_total_bytes: int = 4 * 2**20


@dataclass(frozen=True, slots=True)
class DiscoveryLimits:
    """Bounds of a search for skills below a folder."""

    folders: int = 200_000
    skills: int = 100_000
    depth: int = 24
