"""What counts as getting something from elsewhere."""

from collections.abc import Callable

import pytest

from skill2env.verify.static import fetches
from skill2env.verify.static.fetches import fetched

Found = Callable[..., list[str]]


@pytest.mark.parametrize(
    "command",
    [
        "curl -fsSL https://x.org/a",
        "wget x.org/a.tgz",
        "git clone --depth 1 https://x.org/a /b",
        "git clone git@x.org:a/b",
        "scp user@x.org:/a b",
        "pip install numpy",
        "python3 -m pip install -q numpy==2",
        "uv pip install numpy",
        "uv run --with numpy x.py",
        "uvx ruff",
        "npx cowsay",
        "npm ci",
        "apt-get -y install jq",
        "apt-get update",
        "apk add jq",
        "cargo install x",
        "gem install x",
        "docker pull x",
    ],
)
def test_fetches(command: str) -> None:
    assert fetched(command.split()) is not None


@pytest.mark.parametrize(
    "command",
    [
        "curl http://localhost:8080/a",
        "curl -s http://127.0.0.1/ http://127.0.0.1/b",
        "curl --unix-socket /run/x http://docker/info",
        "curl --version",
        "curl $URL",
        "wget -q file:///a",
        "nc -z localhost 80",
        "nc -l 8080",
        "git log",
        "git clone /srv/repository /tmp/x",
        "git fetch origin",
        "pip install --no-index --find-links=/wheels x",
        "pip install /wheels/x.whl",
        "pip install -e .",
        "pip list",
        "npm ci --offline",
        "npm run build",
        "npx --no-install eslint",
        "dpkg -i x.deb",
        "apt list",
        "go build ./...",
        "cargo test --offline",
        "uv run x.py",
        "echo curl https://x.org",
    ],
)
def test_no_fetches(command: str) -> None:
    assert fetched(command.split()) is None


@pytest.mark.parametrize(
    ("code", "codes"),
    [
        ("import urllib.request as u\nu.urlopen('https://x.org')\n", ["fetch-grading"]),
        ("from urllib.request import urlopen\nB = 'http://x.org'\nurlopen(B + '/a')\n", ["fetch-grading"]),
        ("import requests\nrequests.get(url=f'https://x.org/{1}')\n", ["fetch-grading"]),
        ("import socket\nsocket.create_connection(('x.org', 80))\n", ["fetch-grading"]),
        ("import http.client\nhttp.client.HTTPSConnection('x.org')\n", ["fetch-grading"]),
        ("import pandas\npandas.read_csv('https://x.org/a.csv')\n", ["fetch-grading"]),
        ("import openai\nopenai.OpenAI()\n", ["fetch-grading"]),
        ("import subprocess\nsubprocess.run('pip install x', shell=True)\n", ["fetch-grading"]),
        ("import urllib.request\nurllib.request.urlopen(f'http://127.0.0.1:{port}/')\n", []),
        ("import urllib.request\nurllib.request.urlopen(url)\n", []),
        ("import socket\nsocket.create_connection(('localhost', 80))\n", []),
        ("import pandas\npandas.read_csv('/app/a.csv')\n", []),
        ("LINK = 'https://x.org/help'\nprint('curl https://x.org')\n", []),
    ],
)
def test_python(code: str, codes: list[str], found: Found) -> None:
    assert found(fetches, {"tests/grade.py": code}) == codes


def test_solutions_follow_the_network_of_the_task(found: Found) -> None:
    assert found(fetches, {"solution/solve.sh": "#!/bin/bash\ncurl https://x.org/a\n"}) == ["fetch-solving"]


def test_a_public_fixture_is_no_program(found: Found) -> None:
    script = "#!/bin/bash\ncurl https://x.org/a\n"
    assert found(fetches, {"environment/get.sh": script, "tests/get.sh": script}) == []
