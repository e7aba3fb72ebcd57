"""Every base of the catalog: what it is promised to hold works, and its bytes do not depend on who builds it."""

import os

import pytest

from skill2env.sandbox import catalog
from skill2env.sandbox.base_store import BaseImage
from skill2env.sandbox.doctor import namespace_works
from skill2env.sandbox.identity import current_identity
from skill2env.sandbox.rootfs import ensure_base, packed_base
from skill2env.sandbox.session import Sandbox, SandboxSpec

pytestmark = [pytest.mark.sandbox, pytest.mark.network, pytest.mark.slow, pytest.mark.timeout(1800)]

COMMON = """
set -eu
python3 -c 'import json, sqlite3, ssl'
test -s /etc/ssl/certs/ca-certificates.crt
ps > /dev/null
tmux -V > /dev/null
test -z "$(dpkg --audit)"
test ! -e /etc/apt/sources.list
"""
WORKS = {
    "debian-bookworm": "bash -c true",
    "python-bookworm": """
git --version; curl --version; python3 -m pip --version
python3 -m venv /tmp/v
/tmp/v/bin/pip --version
""",
    "node-bookworm": "git --version; curl --version; node -e 'console.log(1 + 1)' | grep -qx 2; npm --version",
    "build-bookworm": """
git --version; curl --version; cmake --version; pkg-config --version; make --version
printf '#include <cstdio>\\nint main() { std::puts("built"); }\\n' > /tmp/a.cpp
g++ -O2 -o /tmp/a /tmp/a.cpp && /tmp/a | grep -qx built
""",
    "data-bookworm": """
sqlite3 :memory: 'select 6 * 7' | grep -qx 42
echo '{"a": 42}' | jq .a | grep -qx 42
printf 'a,b\\n1,2\\n' > /tmp/t.csv
csvcut -c b /tmp/t.csv | grep -qx 2
mlr --icsv --ojson cat /tmp/t.csv | jq '.[0].b' | grep -qx 2
python3 -c 'import pandas; assert pandas.read_csv("/tmp/t.csv").b.sum() == 2'
""",
    "office-bookworm": """
echo '# Title' | pandoc -o /tmp/t.docx
python3 -c 'import docx; assert docx.Document("/tmp/t.docx").paragraphs[0].text == "Title"'
python3 -c 'import openpyxl; openpyxl.Workbook().save("/tmp/t.xlsx")'
cat > /tmp/t.pdf <<'END'
%PDF-1.4
1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj
2 0 obj <</Type /Pages /Kids [3 0 R] /Count 1>> endobj
3 0 obj <</Type /Page /Parent 2 0 R /MediaBox [0 0 9 9]>> endobj
trailer <</Root 1 0 R>>
END
qpdf --warning-exit-0 /tmp/t.pdf /tmp/u.pdf
pdfinfo /tmp/u.pdf | grep -q 'Pages: *1'
""",
}


QUICK = ("debian-bookworm",)
"""Built in half a minute each; the others take minutes on a fresh machine."""


@pytest.fixture(
    params=[pytest.param(name, marks=[] if name in QUICK else pytest.mark.vast) for name in catalog.CATALOG]
)
def base(request: pytest.FixtureRequest) -> BaseImage:
    if not namespace_works():
        pytest.skip("this machine forbids the namespace sandbox: see `skill2env doctor`")
    return ensure_base(request.param)


def test_what_it_is_for_works_and_its_digest_is_that_of_its_files(base: BaseImage) -> None:
    with Sandbox(SandboxSpec(layers=(base.rootfs,))) as box:
        for script in (COMMON, f"set -eu\n{WORKS[base.name]}"):
            done = box.exec(["/bin/sh", "-c", script], merge_stderr=True, timeout_sec=120)
            assert done.return_code == 0, done.stdout.decode()
    with packed_base(base) as (archive, layer):
        assert archive.stat().st_size == layer.size


def test_every_owner_is_one_that_a_namespace_with_one_uid_can_write(base: BaseImage) -> None:
    """In it all files are root's, so what belongs to another group must be listed, and nothing to another user."""
    identity = current_identity()
    if not identity.several_users:
        pytest.skip("with one uid there is only one owner")
    listing = [
        "find",
        "/",
        "-xdev",
        "(",
        "!",
        "-uid",
        "0",
        "-o",
        "!",
        "-gid",
        "0",
        ")",
        "-printf",
        "%U %G .%p\\n",
    ]
    with Sandbox(SandboxSpec(layers=(base.rootfs,))) as box:
        lines = box.exec(listing).stdout.decode().splitlines()
    known = catalog.lookup(base.name).groups
    assert {line for line in lines if not line.split(" ")[2].startswith(("./dev", "./proc", "./run"))} == {
        f"0 {group} {name}" for name, group in known.items() if os.path.lexists(base.rootfs / name)
    }
