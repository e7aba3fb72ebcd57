"""The dataset card: README.md of a dataset, a pure function of its manifest and its yield."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from skill2env.markdown import cell
from skill2env.publish.entry import TaskEntry
from skill2env.records import Axes

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))


def render_card(
    *,
    name: str,
    version: str,
    description: str,
    entries: Sequence[TaskEntry],
    reasons: Mapping[tuple[str, str], int],
    taken_down: Sequence[str] = (),
) -> str:
    """Markdown of the card.

    Args:
        name: ``org/name`` of the dataset.
        version: its semantic version.
        description: one sentence.
        entries: its tasks.
        reasons: (status, reason) -> how many attempts of all compiles ended so.
        taken_down: selectors of take-downs, as ``kind:value``.
    """
    parts = [_front_matter(name, entries), f"# {name} {version}\n", f"{description}\n"]
    parts.append(
        f"{len(entries)} tasks in Harbor's task format, compiled from {len({e.skill_digest for e in entries})} Agent"
        " Skills by skill2env. Every task passed every gate below; no gate involves a model.\n"
    )
    parts.append(_HOW_TO_RUN)
    parts.append(_counts("Domains", "domain", (e.domain or "undecided" for e in entries)))
    parts.append("## Axes\n")
    for axis in Axes.model_fields:
        parts.append(_counts("", axis.replace("_", " "), (getattr(e.axes, axis) for e in entries)))
    parts.append(_counts("Gates", "gate passed", (gate for e in entries for gate in e.gates), ordered=True))
    parts.append(
        _counts("Findings for a reviewer", "finding", (code for e in entries for code in e.findings))
    )
    parts.append(
        _counts("Licences of the source skills", "licence", (e.licence or "not stated" for e in entries))
    )
    parts.append("Notices of every source skill are kept under `LICENSES/`.\n")
    parts.append(_counts("Authors", "author", (f"{e.author} {e.model}".strip() for e in entries)))
    parts.append(_counts("Base images", "image", (e.base_image or "not recorded" for e in entries)))
    parts.append(_reasons(reasons))
    if taken_down:
        parts.append("## Taken down\n")
        parts.append("\n".join(f"- `{selector}`" for selector in sorted(taken_down)) + "\n")
    return "\n".join(part for part in parts if part)


_HOW_TO_RUN = """## Run it

```sh
harbor run -p . -a oracle -e skill2env.sandbox:NamespaceEnvironment   # or -e docker
skill2env verify .                                                    # every gate again
```

`manifest.jsonl` has one line a task (name, digest, skill, licence, domain, axes, gates); `dataset.toml` pins every
task by Harbor's digest.
"""


def _front_matter(name: str, entries: Sequence[TaskEntry]) -> str:
    licences = {entry.licence for entry in entries}
    only = licences.pop().lower() if len(licences) == 1 else ""
    licence = only if only and " " not in only and not only.startswith("licenseref") else "other"
    size = next((label for limit, label in _SIZES if len(entries) < limit), "100K<n<1M")
    return "\n".join(
        [
            "---",
            f"pretty_name: {name.rsplit('/', maxsplit=1)[-1]}",
            f"license: {licence}",
            "tags: [harbor, agent-skills, reinforcement-learning, skill2env]",
            f"size_categories: [{size}]",
            "configs:",
            "  - config_name: manifest",
            "    data_files: manifest.jsonl",
            "---",
            "",
        ]
    )


def _counts(title: str, heading: str, values: Iterable[str], *, ordered: bool = False) -> str:
    """A table of value and count; by falling count, or in order of first appearance when `ordered`."""
    counted = Counter(values)
    if not counted:
        return ""
    rows = list(counted.items()) if ordered else sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    head = f"## {title}\n\n" if title else ""
    return head + f"| {heading} | tasks |\n|---|---|\n" + "".join(f"| {cell(v)} | {n} |\n" for v, n in rows)


def _reasons(reasons: Mapping[tuple[str, str], int]) -> str:
    if not reasons:
        return ""
    rows = sorted(reasons.items(), key=lambda item: (item[0][0], -item[1], item[0][1]))
    return (
        "## Where every attempt ended\n\n| status | reason | attempts |\n|---|---|---|\n"
        + "".join(f"| {status} | {reason} | {count} |\n" for (status, reason), count in rows)
        + "\n`skill2env explain REASON` says what a reason means and how to mend it.\n"
    )
