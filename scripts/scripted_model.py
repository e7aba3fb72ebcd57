"""A model server without a model: plays the author of one small task for a skill of yours, until Ctrl-C.

    python scripts/scripted_model.py SKILL [--style builtin|bash|terminal] [--port 8000]

Tries an agent, its image and its way to a model without a key: what goes wrong with a real model and not with this one
is the model's doing. Speaks OpenAI's chat completions and responses, and Anthropic's messages.
"""

import argparse
import sys
import time
from contextlib import suppress
from pathlib import Path

from skill2env.authors.demo_script import Style, bash_style, builtin_style, demo_script, terminal_style
from skill2env.errors import UserError
from skill2env.ingest import load_skill
from skill2env.llm.scripted_server import scripted_server

STYLES: dict[str, Style] = {"builtin": builtin_style, "bash": bash_style, "terminal": terminal_style}
"""Style -> for which agents: the built-in one, those with a tool ``bash``, terminus-2."""


def main() -> int:
    """Serve the script for one skill until interrupted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("skill", type=Path, metavar="SKILL", help="folder of the skill that is compiled")
    parser.add_argument("--style", choices=sorted(STYLES), default="builtin", help="of the agent")
    parser.add_argument("--port", type=int, default=8000, help="of this machine; 0 for a free one")
    arguments = parser.parse_args()
    try:
        script = demo_script(load_skill(arguments.skill), style=STYLES[arguments.style])
        with scripted_server(script, port=arguments.port) as server:
            print(f"{server.base_url} plays the author of one task (Ctrl-C ends it)", flush=True)
            with suppress(KeyboardInterrupt):
                while True:
                    time.sleep(3600)
    except UserError as error:
        print(f"scripted_model: {error.message}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"scripted_model: port {arguments.port} cannot be used: {error.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
