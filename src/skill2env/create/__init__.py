"""Stage 4, TaskSpec -> Candidate: two authoring sessions with the sealed grading contract between them."""

from skill2env.create.cache import NO_CACHE, FolderCache, PhaseCache, SessionResult
from skill2env.create.freeze import Seal, freeze_digest
from skill2env.create.host import Grounded, Host, SessionNote
from skill2env.create.outcome import CreateRejected
from skill2env.create.prompting import create_prompt_digest
from skill2env.create.stage import CreateOutcome, create

__all__ = [
    "NO_CACHE",
    "CreateOutcome",
    "CreateRejected",
    "FolderCache",
    "Grounded",
    "Host",
    "PhaseCache",
    "Seal",
    "SessionNote",
    "SessionResult",
    "create",
    "create_prompt_digest",
    "freeze_digest",
]
