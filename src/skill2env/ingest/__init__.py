"""[1] Folder -> Skill: tolerant reading with a diagnostic for everything that deviates.

`load_skill` understands one bundle, `find_skills` lists the bundles below a folder.
"""

from skill2env.ingest.discover import Discovery, find_skills
from skill2env.ingest.inventory import IngestLimits
from skill2env.ingest.quirks import QUIRKS, Quirk
from skill2env.ingest.skill import load_skill

__all__ = ["QUIRKS", "Discovery", "IngestLimits", "Quirk", "find_skills", "load_skill"]
