"""Public files in tasks: an author names them, the host downloads, checks and stages them and keeps their notices.

Downloads happen here and nowhere else, never inside a sandbox and never by a task. What was downloaded once is kept by
content, so that a rerun needs no network.
"""

from skill2env.grounding.ground import Grounder
from skill2env.grounding.settings import make_grounder

__all__ = ["Grounder", "make_grounder"]
