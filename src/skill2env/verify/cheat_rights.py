"""Cheats that need no delivery: forged rewards, and code planted where a verifier may run it."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from skill2env.harbor.outcome import read_tail
from skill2env.verify.cheating import escaped, judge, refused_rights, run_cheat
from skill2env.verify.forging import TRACE, forge_shell, full_reward, plants
from skill2env.verify.gate import Subject
from skill2env.verify.probing import Answer, Asking
from skill2env.verify.reading import read_text, walk
from skill2env.verify.shapes import is_code
from skill2env.verify.study import Study, study_of

_MOST_FOLDERS = 12
_MOST_PROGRAMS = 400
_ABSOLUTE = re.compile(r"/[\w./-]+")
_LOOP = """\
import os, time
while not os.path.exists("/tests"):
    time.sleep(0.002)
end = time.monotonic() + 20
os.chdir("/logs/verifier")
while time.monotonic() < end:
    for name, text in (("reward.txt", "1"), ("reward.json", os.environ["s2e_reward"])):
        try:
            with open(".s2e", "w") as stream:
                stream.write(text)
            os.replace(".s2e", name)
        except OSError:
            time.sleep(0.001)
"""
_BACKGROUND = """\
write() { printf '%s' "$1" > "$2.s2e" && mv -f "$2.s2e" "$2"; }
if [ -d /tests ]; then
  for file in $(find /tests -type f 2>/dev/null); do
    for out in $s2e_outputs; do [ "${file##*/}" = "${out##*/}" ] && mkdir -p "${out%/*}" && cp "$file" "$out"; done
  done
fi
for folder in /logs/verifier /logs/artifacts /logs/agent /logs /tests / "$PWD" "$HOME" /app /tmp; do
  for name in reward.json rewards.json result.json; do write "$s2e_reward" "$folder/$name"; done
  write 1 "$folder/reward.txt"
done 2>/dev/null
mkdir -p /logs/verifier /tests 2>/dev/null
(
  exec </dev/null >/dev/null 2>&1
  if command -v python3; then setsid python3 -I -S -c "$s2e_loop" &
  else setsid bash -c 'for n in $(seq 3000); do
    printf %s "$s2e_reward" > /logs/verifier/.s2e && mv -f /logs/verifier/.s2e /logs/verifier/reward.json
    printf %s 1 > /logs/verifier/.s2e && mv -f /logs/verifier/.s2e /logs/verifier/reward.txt
    sleep 0.002
  done' & fi
)
"""


def ask_rewards(asking: Asking) -> Answer:
    """Write full rewards everywhere, and go on in the background while the verifier runs."""
    study = study_of(asking.subject, asking.context)
    refused = refused_rights(asking, study)
    if refused is not None:
        return refused
    reward, outputs = full_reward(study.metrics), " ".join(study.outputs)
    before = (
        f"export s2e_reward='{escaped(reward)}' s2e_outputs='{escaped(outputs)}' "
        f"s2e_loop='{escaped(_LOOP)}'\n"
    )
    outcome = run_cheat(asking, study, (), before=before, after=_BACKGROUND, partly=True)
    return judge(
        asking, outcome, "forging reward files, before and while the verifier runs,", code="cheat-rewards"
    )


def ask_reward_folders(asking: Asking) -> Answer:
    """Make it impossible to write the true reward."""
    study = study_of(asking.subject, asking.context)
    refused = refused_rights(asking, study)
    if refused is not None:
        return refused
    reward = escaped(full_reward(study.metrics))
    script = f"""\
cd /tmp && printf %s '{reward}' > s2e.json && printf 1 > s2e.txt && chmod 444 s2e.json s2e.txt
mv /logs/verifier /logs/.s2e-old 2>/dev/null && mkdir -m 755 /logs/verifier
for name in reward.json.tmp reward.txt.tmp .reward.json.tmp reward.tmp; do mkdir -p /logs/verifier/$name/x; done
ln -sfn /tmp/s2e.json /logs/verifier/reward.json; ln -sfn /tmp/s2e.txt /logs/verifier/reward.txt
"""
    return judge(
        asking,
        run_cheat(asking, study, (), after=script, partly=True),
        "keeping the verifier from writing its files",
        code="cheat-rewards",
    )


def ask_plants(asking: Asking) -> Answer:
    """Plant code on every path on which programs are started, configured or imported."""
    study = study_of(asking.subject, asking.context)
    refused = refused_rights(asking, study)
    if refused is not None:
        return refused
    texts = _verifier_texts(asking.subject)
    writable = {file.path: file for file in (*study.fixtures.values(), *study.originals.values())}
    mine = {path: file.data or b"" for path, file in writable.items() if path in study.writable}
    drops = plants(
        folders=_folders(study, texts),
        search_path=_search_path(study, texts),
        home=study.home or "/nonexistent",
        programs=[(p, d) for p, d in mine.items() if is_code(p, d) or writable[p].mode & 0o111][
            :_MOST_PROGRAMS
        ],
        git_configs=[(path, data) for path, data in mine.items() if path.endswith("/.git/config")],
        rc_files=[(path, data) for path, data in mine.items() if path.endswith(("/.bashrc", "/.profile"))],
        verifier_texts=texts,
        forge=forge_shell(study.metrics),
    )
    outcome = run_cheat(asking, study, drops, partly=True)
    run = sorted({line for line in read_tail(outcome.folder / "verifier" / TRACE).splitlines() if line})
    named = ", ".join(run[:3]) or "files beside the data, in the home folder and on search paths"
    return judge(
        asking, outcome, f"code planted where the agent may write ({named}) is run by the verifier and"
    )


def _folders(study: Study, texts: Sequence[str]) -> list[str]:
    """Folders for plants: those that the verifier names, then those of outputs, fixtures and the agent."""
    writable = set(study.folders)
    named = {path.rstrip("/") for text in texts for path in _ABSOLUTE.findall(text)}
    outputs = {str(PurePosixPath(path).parent) for path in study.outputs}
    wanted = [
        *sorted(folder for folder in writable if folder in named),
        *sorted(outputs),
        study.workdir,
        study.home,
        *sorted(str(PurePosixPath(path).parent) for path in study.fixtures if path.endswith(".py")),
        *sorted(folder for folder in writable if not folder.startswith(("/proc", "/dev", "/logs"))),
    ]
    possible = [
        folder
        for folder in dict.fromkeys(wanted)
        if folder and any(folder == place or folder.startswith(place.rstrip("/") + "/") for place in writable)
    ]
    return possible[:_MOST_FOLDERS]


def _search_path(study: Study, texts: Sequence[str]) -> list[str]:
    """Folders of programs in which the agent may make files: of its own path, and of those the verifier sets."""
    told = {
        folder
        for text in texts
        for line in re.findall(r"PATH=\S+", text)
        for folder in _ABSOLUTE.findall(line)
    }
    writable = [place.rstrip("/") + "/" for place in study.folders]
    wanted = dict.fromkeys(
        [*study.search_path, *sorted(told), f"{study.home}/bin", f"{study.home}/.local/bin"]
    )
    return [folder for folder in wanted if (folder.rstrip("/") + "/").startswith(tuple(writable))][
        :_MOST_FOLDERS
    ]


def _verifier_texts(subject: Subject) -> list[str]:
    """Text files of tests/, test.sh first."""
    names = sorted(
        name for name, _ in walk(subject.task_dir / "tests") if name.endswith((".sh", ".py", ".js", ".bats"))
    )
    names.sort(key=lambda name: name != "test.sh")
    return [text for name in names if (text := read_text(subject.task_dir / "tests" / name)) is not None]
