"""A network for a container that has none: our proxy's socket, and the relay that listens for it inside."""

from collections.abc import Mapping
from pathlib import Path

from skill2env.errors import Boundary, InfraError
from skill2env.sandbox.engine_box import EngineBox
from skill2env.sandbox.layout import INSIDE, PROXY_PORT, Bind
from skill2env.sandbox.network import Network

_LISTEN = r"""
import os, socket, sys
code, port, path = sys.argv[1:]
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(port)))
listener.listen(128)
if os.fork() == 0:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.set_inheritable(listener.fileno(), True)
    os.execv(sys.executable, [sys.executable, "-I", "-S", "-B", "-c", code, str(listener.fileno()), path])
"""


def network_binds(network: Network) -> tuple[Bind, ...]:
    """What a container needs of a network of ours, as binds."""
    sockets = {f"{INSIDE}/proxy.sock": network.proxy.socket_path, **_forwards(network.forwards)}
    return (*network.binds, *(Bind(path, target, writable=True) for target, path in sockets.items()))


def start_relays(box: EngineBox, network: Network) -> None:
    """Let 127.0.0.1 inside lead to the sockets of `network_binds`.

    Raises:
        InfraError: the image has no python3, or the engine is not on this machine.
    """
    _relay(box, PROXY_PORT, f"{INSIDE}/proxy.sock")
    for port in network.forwards:
        _relay(box, port, _socket(port))


def _socket(port: int) -> str:
    return f"{INSIDE}/forward-{port}.sock"


def _forwards(forwards: Mapping[int, Path]) -> dict[str, Path]:
    return {_socket(port): path for port, path in forwards.items()}


def _relay(box: EngineBox, port: int, path: str) -> None:
    code = Path(__file__).with_name("guest_relay.py").read_text(encoding="utf-8")
    done = box.exec(
        ["python3", "-I", "-S", "-B", "-c", _LISTEN, code, str(port), path], merge_stderr=True, timeout_sec=30
    )
    if done.return_code:
        told = done.stdout.decode(errors="replace").strip()[-300:]
        raise InfraError(
            Boundary.SANDBOX,
            f"the network of the container cannot be offered: {told or done.return_code}",
            hint="An allowlist, and a network that changes between phases, need python3 in the image.",
            transient=False,
        )
