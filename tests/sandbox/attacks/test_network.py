# ruff: noqa: E501 (programs keep their lines)
"""The one socket that leads out, abused from inside: what the proxy and the relay before it stand."""

import time
from collections.abc import Callable, Iterator

import pytest

from skill2env.sandbox.command import ExecOutcome
from skill2env.sandbox.egress import Egress
from skill2env.sandbox.layout import PROXY_PORT
from skill2env.sandbox.network import Network, trial_network
from skill2env.sandbox.session import Sandbox

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("no_machine_proxy")]


@pytest.fixture
def service(serve: Callable[[bytes], int]) -> int:
    """A server on the host's loopback."""
    return serve(b"reached")


@pytest.fixture
def network(service: int) -> Iterator[Network]:
    """A public network that may also reach the server."""
    with trial_network(Egress.public([f"127.0.0.1:{service}"]), "bookworm") as found:
        yield found


@pytest.fixture
def online(network: Network, fresh: Callable[..., Sandbox]) -> Sandbox:
    return fresh(binds=network.binds, proxy_socket=network.proxy.socket_path)


ASK = (
    "def ask(request, timeout=10):\n"
    f"  s = socket.create_connection(('127.0.0.1', {PROXY_PORT}), 5); s.settimeout(timeout)\n"
    "  s.sendall(request if isinstance(request, bytes) else request.encode()); answer = b''\n"
    "  try:\n    while True:\n      piece = s.recv(65536)\n      if not piece: break\n      answer += piece\n"
    "  except OSError: pass\n  return answer\n"
    "good = f'GET http://127.0.0.1:{sys.argv[1]}/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'\n"
)
ABUSE = {
    "this machine": (
        "for host in ('127.0.0.1:22', 'localhost:80', '[::1]:80', '0.0.0.0:80', '127.1:80', '2130706433:80', "
        "'0x7f.1:80', '[::ffff:7f00:1]:80'):\n  a = ask(f'CONNECT {host} HTTP/1.1\\r\\n\\r\\n')\n"
        "  assert a.startswith(b'HTTP/1.1 403'), (host, a)\n"
    ),
    "cloud metadata": (
        "for host in ('169.254.169.254', '100.100.100.200', '168.63.129.16', '[fd00:ec2::254]', "
        "'metadata.google.internal'):\n  a = ask(f'GET http://{host}/latest/ HTTP/1.1\\r\\n\\r\\n')\n"
        "  assert a.startswith(b'HTTP/1.1 403'), (host, a)\n"
    ),
    "smuggled requests": (
        "for head in ('GET http://127.0.0.1:PORT/ HTTP/1.1\\r\\nA: b\\n\\nGET http://127.0.0.1:22/ HTTP/1.1', "
        "'GET http://127.0.0.1:PORT/ HTTP/1.1\\r\\nContent-Length: 1\\r\\nTransfer-Encoding: chunked', "
        "'CONNECT 127.0.0.1:22\\n@127.0.0.1:PORT HTTP/1.1', 'GET file:///etc/passwd HTTP/1.1', "
        "'GET http://127.0.0.1:PORT@127.0.0.1:22/ HTTP/1.1'):\n"
        "  a = ask(head.replace('PORT', sys.argv[1]) + '\\r\\n\\r\\n')\n  assert a.startswith(b'HTTP/1.1 403'), (head, a)\n"
        "assert ask(good + good).count(b'HTTP/1.') == 1\n"
    ),
    "huge heads": (
        "for n in (70_000, 5_000_000):\n  try: assert ask(b'GET http://x/' + b'a' * n, 5) == b''\n  except OSError: pass\n"
        "try: ask(b'GET http://x/ HTTP/1.1\\r\\n' + b'A: b\\r\\n' * 200_000, 5)\nexcept OSError: pass\n"
    ),
    "noise": (
        "import random\nr = random.Random(7)\nfor _ in range(200):\n"
        "  try: ask(r.randbytes(r.randrange(400)) + b'\\r\\n\\r\\n', 2)\n  except OSError: pass\n"
    ),
    "a flood of connections": (
        "kept = []\nfor _ in range(2000):\n  try:\n    s = socket.socket(); s.settimeout(1)\n"
        f"    s.connect(('127.0.0.1', {PROXY_PORT})); kept.append(s)\n  except OSError: break\n"
        "for s in kept: s.close()\ntime.sleep(1)\n"
    ),
    "slow-loris": (
        "kept = []\nfor _ in range(60):\n"
        f"  s = socket.create_connection(('127.0.0.1', {PROXY_PORT}), 5); s.sendall(b'GET http'); kept.append(s)\n"
        "for _ in range(3):\n  time.sleep(0.2)\n  for s in kept: s.sendall(b'x')\n"
        "for s in kept: s.close()\ntime.sleep(0.5)\n"
    ),
    "requests that nobody reads": (
        "kept = []\nfor _ in range(30):\n"
        f"  s = socket.create_connection(('127.0.0.1', {PROXY_PORT}), 5); s.sendall(good.encode()); kept.append(s)\n"
        "for s in kept: s.close()\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ABUSE)
def test_proxy(
    online: Sandbox,
    network: Network,
    in_fresh: Callable[..., ExecOutcome],
    service: int,
    who: str | None,
    name: str,
) -> None:
    """Whatever was tried, the next honest request is answered, and the log has a bound."""
    after = "for _ in range(30):\n  if b'reached' in ask(good): print('held'); break\n  time.sleep(0.3)\n"
    done = in_fresh(online, ASK + ABUSE[name] + after, str(service), user=who, timeout_sec=90)
    assert done.stdout.endswith(b"held\n"), done
    assert all(len(access.host) <= 255 for access in network.proxy.log)


def test_a_relay_that_is_killed_comes_back_and_its_port_stays_taken(
    online: Sandbox, in_fresh: Callable[..., ExecOutcome], service: int
) -> None:
    script = (
        "for _ in range(5):\n  subprocess.run(['pkill', '-9', '-f', '[r]elay.py'])\n"
        f"  s = socket.socket(); s.setsockopt(1, 2, 1)\n  try: s.bind(('127.0.0.1', {PROXY_PORT})); s.listen(); print('BROKEN')\n"
        "  except OSError: pass\n  assert any(b'reached' in ask(good) for _ in range(5))\nprint('held')"
    )
    done = in_fresh(online, ASK + script, str(service))
    assert done.stdout == b"held\n", done
    online._breached("memory_mb", "a limit")  # pyright: ignore[reportPrivateUsage]
    time.sleep(0.3)
    assert b"reached" in in_fresh(online, ASK + "print(ask(good))", str(service)).stdout


def test_the_socket_itself_knows_no_more(
    online: Sandbox, in_fresh: Callable[..., ExecOutcome], service: int, who: str | None
) -> None:
    script = (
        "def direct(request):\n  s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect('/run/skill2env/proxy.sock')\n"
        "  s.sendall(request.encode()); return s.recv(100)\n"
        "assert direct('CONNECT 127.0.0.1:22 HTTP/1.1\\r\\n\\r\\n').startswith(b'HTTP/1.1 403')\n"
        "for way in (lambda: os.unlink('/run/skill2env/proxy.sock'), lambda: os.rename('/run/skill2env/proxy.sock', '/run/x')):\n"
        "  try: way(); print('BROKEN')\n  except OSError: pass\nprint('held')"
    )
    done = in_fresh(online, ASK + script, str(service), user=who)
    assert done.stdout == b"held\n", done
