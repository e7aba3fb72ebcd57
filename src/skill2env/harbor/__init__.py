"""Harbor's task format, trials, lint, digests and dataset manifest, behind functions that use our records.

Importing any module of this package keeps Harbor and litellm from reaching out: the two switches are set before
Harbor is imported, unless the caller has set them to something else.
"""

import os

os.environ.setdefault("HARBOR_TELEMETRY", "0")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "true")
