"""Every oddity that ingest knows, through a hub: stored, indexed, exported, or left out with a reason."""

import os
from pathlib import Path

from tests.hub.test_sync import left_out, places
from tests.ingest.test_quirks import BAD

from skill2env.hub.database import Database
from skill2env.hub.explain import explain
from skill2env.hub.export import export_skills
from skill2env.hub.folder import Hub
from skill2env.hub.integrity import verify_hub
from skill2env.hub.queries import Filter
from skill2env.ingest import find_skills, load_skill
from skill2env.records import Severity


def test_every_quirk_goes_through(tmp_path: Path, hub: Hub, synced) -> None:
    source = tmp_path / "quirks"
    built = {code: build for code, build in BAD.items() if code != "unreadable" or os.geteuid()}
    for code, build in built.items():
        (source / code).mkdir(parents=True)
        build(source / code)
    done = synced(source)
    assert done.sources[0].error == ""
    taken = {place.partition(":")[2].split("/")[0] for place in places(hub)}
    reasons = {where.split("/")[0] for _, where in left_out(hub, "quirks")}
    assert taken | reasons >= set(built)
    assert not verify_hub(hub, workers=1).problems
    with Database.read(hub.index) as database:
        rows = list(database.rows("SELECT digest, verdict FROM skills"))
    assert all(row["verdict"] for row in rows)
    for row in rows:
        (known,) = explain(hub, row["digest"])
        blocked = {item["code"] for item in known["diagnostics"] if item["severity"] == Severity.ERROR}
        assert not blocked or known["screening"]["verdict"] != "compile", f"{blocked} would be compiled"
    export_skills(hub, tmp_path / "out", Filter(allowed=True))
    again = {load_skill(folder).digest for folder in find_skills(tmp_path / "out").folders}
    assert len(again) > 50
    assert again - {row["digest"] for row in rows} <= {
        load_skill(folder).digest
        for folder in find_skills(tmp_path / "out").folders
        if "REDACTED"
        in "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())
    }
