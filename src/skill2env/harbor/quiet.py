"""Harbor's deprecation notes are for its own authors and for task authors; gates report what matters themselves."""

import threading
import warnings

_MESSAGES = (
    "Task.checksum will be deprecated",
    "The 'allow_internet' field",
    "The 'memory' field",
    "The 'storage' field",
)
_LOCK = threading.Lock()


def quiet_harbor() -> None:
    """Ignore those notes from now on.

    Filters are added once and never taken back: `warnings.catch_warnings` swaps a process-wide list and so cannot be
    used around trials that run in several threads.
    """
    with _LOCK:
        present = {getattr(item[1], "pattern", item[1]) for item in warnings.filters}
        for message in _MESSAGES:
            if message not in present:
                warnings.filterwarnings("ignore", message=message, category=DeprecationWarning)
