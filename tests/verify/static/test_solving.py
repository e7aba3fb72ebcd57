"""Instructions that solve, solutions that do not, facts of the machine, Dockerfiles."""

# ruff: noqa: E501  # tables of scripts

import base64
import gzip
from collections.abc import Callable
from datetime import date

import pytest

from skill2env.verify import dockerfile
from skill2env.verify.leak_scanner import canonical_digest, forms, result_held
from skill2env.verify.static import given as given_gate
from skill2env.verify.static import hosts
from skill2env.verify.static.names import layout_tokens, names_in, respell_names

Found = Callable[..., list[str]]
HEAD = "#!/bin/bash\n"
ASK = "The counts lie in `/app/numbers.txt`. Write the sum to `/app/out/sum.txt`.\n"


@pytest.mark.parametrize(
    ("instruction", "solution", "codes"),
    [
        (ASK + "\n    sort -n /app/numbers.txt | uniq -c > /app/out/sum.txt\n", "sort -n /app/numbers.txt | uniq -c > /app/out/sum.txt\n", ["instruction-solves"]),
        (ASK + "\n```\n$ sort -n -u /app/numbers.txt > /app/out/a\n```\n", "sort -n -u /app/numbers.txt > /app/out/a\nawk '{ t += $1 } END { print t / NR }' /app/out/a > /app/out/sum.txt\n", ["instruction-hints"]),
        (ASK + "\nRun `cat /app/numbers.txt` to see them.\n", "sort -n /app/numbers.txt | uniq -c > /app/out/sum.txt\n", []),
        (ASK, "echo '1 2 3 4 5 6 7' > /app/out/sum.txt\n", ["solution-constant"]),
        (ASK, "echo 193 > /app/out/sum.txt\n", ["solution-constant-short"]),
        (ASK, "python3 - <<'P'\nopen('/app/out/sum.txt', 'w').write('11 12 13 14 15 16')\nP\n", ["solution-constant"]),
        (ASK, "python3 - <<'P'\nx = open('/app/numbers.txt').read()\nopen('/app/out/sum.txt', 'w').write('11 12 13 14 15 16')\nP\n", []),
        (ASK, "cat > /app/sum.py <<'P'\nprint(11, 12, 13, 14, 15, 16)\nP\n", []),
        (ASK, "cp ../tests/sum.txt /app/out/sum.txt\n", ["solution-reads-tests"]),
        (ASK, "wc /app/tests/x /app/numbers.txt\n", []),
        (ASK, "wc /app/numbers.txt; echo 1 > /logs/verifier/reward.txt\n", ["solution-writes-reward"]),
    ],
)  # fmt: skip
def test_given(instruction: str, solution: str, codes: list[str], found: Found) -> None:
    assert found(given_gate, {"instruction.md": instruction, "solution/solve.sh": HEAD + solution}) == codes


@pytest.mark.parametrize(
    ("solution", "grade", "codes"),
    [
        ("hostname > /app/x\n", "import socket\nsocket.gethostname()\n", ["host-dependent"]),
        ("grep MemTotal /proc/meminfo > /app/x\n", "open('/proc/meminfo')\n", ["host-dependent"]),
        ("uname -r > /app/x\n", "import os\nos.uname().release\n", ["host-dependent"]),
        ("cat > /app/x.sh <<'S'\nhostname\nS\n", "import socket\nsocket.gethostname()\n", []),
        ("cat > /app/x.sh <<'S'\n#!/bin/bash\nhostname\nS\nbash /app/x.sh\n", "import socket\nsocket.gethostname()\n", []),
        ("uname -s\n", "import os\nos.uname()\n", []),
        ("make -j$(nproc)\n", "import os\nos.cpu_count()\n", ["bare-nproc"]),
        ("df /app\n", "import os\nos.listdir('/proc')\n", []),
        ("true\n", "import datetime\ndatetime.datetime.now()\n", ["clock-read"]),
        ("true\n", "import time\ntime.time()\ntime.strftime('%Y', time.gmtime(0))\n", []),
    ],
)  # fmt: skip
def test_hosts(solution: str, grade: str, codes: list[str], found: Found) -> None:
    assert found(hosts, {"solution/solve.sh": HEAD + solution, "tests/grade.py": grade}) == codes


def test_days_close_to_today_count_with_a_clock_only(found: Found) -> None:
    text = "import datetime\nEND = '2027-01-31'\nOLD = '2020-02-02'\n"
    clock = text + "datetime.date.today()\n"
    assert found(hosts, {"tests/grade.py": clock}, today=date(2026, 6, 1)) == [
        "clock-read",
        "date-near-today",
    ]
    assert found(hosts, {"tests/grade.py": clock}, today=date(2023, 6, 1)) == ["clock-read"]
    assert found(hosts, {"tests/grade.py": clock}) == ["clock-read"]
    assert found(hosts, {"tests/grade.py": text}, today=date(2026, 6, 1)) == []


PIN = "registry.example/skill2env/debian-bookworm@sha256:" + "a" * 64
USER = "RUN useradd -m agent\n"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (f"FROM --platform=linux/amd64 {PIN}\n{USER}", ["dockerfile-platform"]),
        (f"ARG B={PIN}\nFROM $B\n{USER}", ["dockerfile-variable-base"]),
        (f"FROM debian:latest\n{USER}", ["dockerfile-unpinned", "dockerfile-latest"]),
        (f"FROM {PIN}\n{USER}RUN pip install a==1 b && npm i -g c\n", ["dockerfile-unpinned-package"] * 2),
        (f"FROM {PIN}\n{USER}RUN pip install -r r.txt && apt-get install -y jq\n", []),
        (f"FROM {PIN}\n{USER}RUN curl -L https://x.org/a | tar x\n", ["dockerfile-fetch"]),
        (f"FROM {PIN}\n{USER}RUN make -j$(nproc)\n", ["bare-nproc"]),
        (f"FROM {PIN}\n{USER}COPY <<X /opt/a\necho 1 > /logs/verifier/reward.txt\nX\n", ["dockerfile-copies-private"]),
        (f"FROM {PIN} AS a\nCOPY ../tests /x\nFROM {PIN}\nCOPY --from=a /x /y\n", ["dockerfile-stages"] * 2 + ["dockerfile-copies-private"]),
    ],
)  # fmt: skip
def test_dockerfiles(text: str, codes: list[str], found: Found) -> None:
    assert found(dockerfile, {"environment/Dockerfile": text}) == codes


def test_compose_contexts_that_reach_the_tests(found: Found) -> None:
    compose = "services:\n  main:\n    build: {context: ..}\n    volumes: ['../solution:/s']\n"
    text = f"FROM {PIN}\n{USER}COPY tests/grade.py /app/\n"
    changes = {"environment/Dockerfile": text, "environment/docker-compose.yaml": compose}
    assert found(dockerfile, changes) == ["dockerfile-copies-private"] * 2


def test_names_of_fields_and_how_they_are_respelled() -> None:
    data = b'{"a_b": [{"c": 1, "dd": "a_b"}], "2024": {}}'
    assert list(names_in("/x.json", data)) == ["a_b", "dd"]
    assert respell_names("/x.json", data, ["a_b"]) == b'{"a_b_x": [{"c": 1, "dd": "a_b"}], "2024": {}}'
    assert list(names_in("/x.csv", b"kiln,cups\nab,cd\n")) == ["kiln", "cups"]
    assert respell_names("/x.csv", b"kiln,cups\nkiln,1\n", ["kiln"]) == b"kiln_x,cups\nkiln,1\n"
    assert respell_names("/x.json", b"[1]", ["kiln"]) is None


def test_separators_of_plain_texts_only() -> None:
    assert layout_tokens("/x.txt", b"a :: b | c -- d, e.\n") == ["--", "::", "|"]
    assert layout_tokens("/x.py", b"a == b\n") == []
    assert layout_tokens("/x.txt", b'{"a": []}') == []


def test_layout_does_not_matter_for_results() -> None:
    assert canonical_digest(b'{"a": 1, "b": [2]}') == canonical_digest(b'{ "b":[2],\n"a":1 }\n')
    assert canonical_digest(b"b, 1\na, 2\n") == canonical_digest(b"a,2\n\nb,1")
    assert canonical_digest(b"a, 1\n") != canonical_digest(b"a, 2\n")


def test_results_are_seen_in_another_form_and_behind_a_packing() -> None:
    data = b"kiln,cups\nnorth,4179\nsouth,3920\nwest,1284\n"
    result = {"kind": "result", "path": "/x.csv", "size": len(data), "canonical": canonical_digest(data)}
    by_value = [{**result, "values": ["1284", "3920", "4179"]}]
    assert result_held(b'{"north": 4179, "south": 3920, "west": 1284}', by_value) == "/x.csv"
    assert not result_held(b'{"north": 4179, "south": 3920, "west": 1285}', by_value)
    assert not result_held(b"4179 3920 1284 " + b"x" * 2000, by_value)
    packed = [base64.b64encode(data), gzip.compress(data), base64.b64encode(gzip.compress(data))]
    assert all(data in list(forms(text)) for text in packed)
