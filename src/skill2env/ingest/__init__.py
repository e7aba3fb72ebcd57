"""[1] Folder -> Skill: tolerant reading with a diagnostic for everything that deviates.

`load_skill` understands one bundle, `find_skills` lists the bundles below a folder, `blocking` says what makes a skill
unusable. `QUIRKS` is the table of everything that can be noticed.
"""

from skill2env.ingest.discover import Discovery, find_skills
from skill2env.ingest.limits import DiscoveryLimits, IngestLimits
from skill2env.ingest.notices import notices_around
from skill2env.ingest.quirks import QUIRKS, Quirk
from skill2env.ingest.skill import blocking, is_fixture, load_skill

__all__ = [
    "QUIRKS",
    "Discovery",
    "DiscoveryLimits",
    "IngestLimits",
    "Quirk",
    "blocking",
    "find_skills",
    "is_fixture",
    "load_skill",
    "notices_around",
]
