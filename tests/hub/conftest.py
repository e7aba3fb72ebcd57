import re
from collections.abc import Callable
from pathlib import Path

import pytest

from skill2env.hub.folder import Hub, register
from skill2env.hub.sources import spec_of
from skill2env.hub.update import Updated, sync_hub

BODY = """\
## Steps

1. Read `input.csv` with the `csv` module, keep the header and the order of its 3 columns.
2. Reject rows without a number in `amount` and count them in `rejected`.
3. Sum the column `amount` by `region`; round half to even, to 2 decimals.
4. Write `totals.json` with sorted keys, indented by 2, and a final newline.
5. Compare the sum of all regions with `checksum.txt`; a difference above 0.01 is an error with exit code 4.

```python
import csv, json
from decimal import Decimal

rows = list(csv.DictReader(open("input.csv")))
totals: dict[str, Decimal] = {}
rejected = 0
for row in rows:
    try:
        amount = Decimal(row["amount"])
    except ArithmeticError:
        rejected += 1
        continue
    totals[row["region"]] = totals.get(row["region"], Decimal(0)) + amount
result = {region: f"{value:.2f}" for region, value in totals.items()}
json.dump({"rejected": rejected, "totals": result}, open("totals.json", "w"), indent=2, sort_keys=True)
```

Check the result with `jq .totals totals.json`, which must list 4 regions for the sample:

| region | rows | amount |
|---|---|---|
| north | 12 | 12.50 |
| south | 7 | 7.25 |
| east | 3 | 103.00 |
| west | 1 | 0.10 |
"""


def make_skill(
    folder: Path, name: str = "sums", *, body: str = BODY, licence: str = "MIT", **files: str | bytes
) -> Path:
    """A small, sound skill; `files` are more files, ``__`` standing for a slash and ``_py`` for ``.py``."""
    folder.mkdir(parents=True, exist_ok=True)
    terms = f"license: {licence}\n" if licence else ""
    text = f"---\nname: {name}\ndescription: Sums columns of {name}. Use when a table has to be added up.\n{terms}---\n"
    (folder / "SKILL.md").write_text(text + body, encoding="utf-8")
    for path, content in files.items():
        target = folder / re.sub(r"_(py|sh|md|bin)$", r".\1", path.replace("__", "/"))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    return Hub(tmp_path / "hub")


@pytest.fixture
def synced(hub: Hub) -> Callable[..., Updated]:
    """Registers sources and syncs with one worker."""

    def sync(*sources: str | Path, **options: object) -> Updated:
        if sources:
            register(hub, [spec_of(hub, str(source)) for source in sources])
        return sync_hub(hub, workers=1, **options)  # type: ignore[arg-type]

    return sync
