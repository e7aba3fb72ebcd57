"""Gate `cheats`: what does not do the work earns nothing on any metric.

Every probe is an agent of ours with the rights of the task's own agent. It knows what an agent could know or guess: the
instruction, the image, the form of the answer. What it delivers differs from the reference solution's in every value.
Where the agent is root beside the verifier no verifier could resist, so attacks by rights are replaced by one finding.
"""

from collections.abc import Sequence

from skill2env.verify.cheat_deliveries import (
    STRICT,
    ask_all_empty,
    ask_copies,
    ask_links,
    ask_pipes,
    ask_program,
    ask_status,
    ask_stub,
    shape_probe,
)
from skill2env.verify.cheat_rights import ask_plants, ask_reward_folders, ask_rewards
from skill2env.verify.gate import GateContext, Subject
from skill2env.verify.mutable_truth import ask_truth
from skill2env.verify.probing import Probe, gate_of

NAME = "cheats"


def cheat_probes(subject: Subject, context: GateContext) -> Sequence[Probe]:
    """All probes; `gate_of` leaves out those of other levels."""
    del subject, context
    return [
        Probe("rewards", ask_rewards),
        Probe("plants", ask_plants),
        Probe("status", ask_status),
        *(shape_probe(name) for name in ("empty", "hollow", "constant")),
        Probe("copies", lambda asking: ask_copies(asking, 0)),
        Probe("truth", ask_truth),
        Probe("program", lambda asking: ask_program(asking, forge=True)),
        Probe("stub", ask_stub),
        *(shape_probe(name, strict=True) for name in ("braces", "brackets", "zero", "agreeing")),
        Probe("copies-second", lambda asking: ask_copies(asking, 1), STRICT),
        Probe("copies-third", lambda asking: ask_copies(asking, 2), STRICT),
        Probe("all-empty", ask_all_empty, STRICT),
        Probe("program-agrees", lambda asking: ask_program(asking, say="OK\n1 passed\nPASS\n"), STRICT),
        Probe("program-fails", lambda asking: ask_program(asking, code=1), STRICT),
        Probe("reward-folders", ask_reward_folders, STRICT),
        Probe("links", ask_links, STRICT),
        Probe("pipes", ask_pipes, STRICT),
    ]


check = gate_of(NAME, cheat_probes)
