"""Every rule that a gate can find broken, in one table: the reason it rejects for, and how much it matters to whom.

Two profiles read the same findings differently. What makes a task wrong for everybody rejects in both; what only our
own format promises (separate verifier, unprivileged agent, metric map, rubric headings, pins ...) is a warning about
tasks made by others.
"""

# ruff: noqa: E501  # tables: one line an entry

from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from skill2env.harbor.rewards import RewardProblem
from skill2env.records import Reason, Severity

E, W, I = Severity.ERROR, Severity.WARN, Severity.INFO  # noqa: E741 (the table below is read by column)


class Profile(StrEnum):
    """Whose tasks are judged."""

    OURS = "ours"
    """Made by skill2env: every rule of the task format rejects."""
    FOREIGN = "foreign"
    """Made by others: only what makes a task wrong for everybody rejects."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that can be wrong."""

    code: str
    """Stable id of the finding."""
    reason: Reason
    ours: Severity
    foreign: Severity
    mend: str
    """One sentence: how to mend the task."""

    def severity(self, profile: Profile) -> Severity:
        """How much it matters under `profile`; ``error`` rejects."""
        return self.ours if profile is Profile.OURS else self.foreign


# fmt: off
_FILES = (
    Rule("file-missing", Reason.MALFORMED, E, W, "Add the file; docs/task-format.md lists what a task holds."),
    Rule("file-required", Reason.MALFORMED, E, E, "Add the file; no consumer can load the task without it."),
    Rule("file-empty", Reason.MALFORMED, E, W, "Write the file's content."),
    Rule("file-unreadable", Reason.MALFORMED, E, E, "Make it a regular file that can be read."),
    Rule("text-not-utf8", Reason.MALFORMED, E, W, "Store the file as UTF-8 without NUL bytes."),
    Rule("text-hidden", Reason.HIDDEN_TEXT, E, E, "Remove zero-width, bidirectional and tag characters."),
    Rule("link-escapes", Reason.UNSAFE_FILE, E, E, "Replace the link by a copy of the file it points to."),
    Rule("link", Reason.UNSAFE_FILE, E, I, "Replace the link by a copy of the file it points to."),
    Rule("special-file", Reason.UNSAFE_FILE, E, E, "Remove devices, pipes and sockets from the task folder."),
    Rule("name-unsafe", Reason.UNSAFE_FILE, E, E, "Rename the file with letters, digits, '.', '-' and '_'."),
    Rule("name-not-portable", Reason.UNSAFE_FILE, E, W, "Rename the file with letters, digits, '.', '-' and '_'."),
    Rule("name-forbidden", Reason.UNSAFE_FILE, E, W, "Remove the file; it is a leftover or holds private data."),
    Rule("file-too-large", Reason.TOO_LARGE, E, W, "Make the fixture smaller or generate it in the Dockerfile."),
    Rule("task-too-large", Reason.TOO_LARGE, E, W, "Make the fixtures smaller or generate them in the Dockerfile."),
    Rule("task-huge", Reason.TOO_LARGE, E, E, "Generate or download large fixtures in the Dockerfile."),
    Rule("too-many-files", Reason.TOO_LARGE, E, W, "Pack the fixtures or generate them in the Dockerfile."),
    Rule("tests-not-flat", Reason.MALFORMED, W, I, "Move the helpers of tests/ to its top level: some consumers copy nothing else."),
)

_CONFIG = (
    Rule("config-invalid", Reason.MALFORMED, E, E, "Mend task.toml until Harbor's schema accepts it."),
    Rule("config-name", Reason.CONFIG_RULE, E, W, "Set [task] name to organisation/name."),
    Rule("config-schema", Reason.CONFIG_RULE, E, I, "Set schema_version to 1.4."),
    Rule("network-open", Reason.CONFIG_RULE, E, W, "Set network_mode to no-network for environment, agent and verifier."),
    Rule("verifier-shared", Reason.CONFIG_RULE, E, W, "Set [verifier] environment_mode to separate and list the graded paths as artifacts."),
    Rule("agent-root", Reason.CONFIG_RULE, E, W, "Create a user in the Dockerfile and set [agent] user to it."),
    Rule("artifacts-missing", Reason.CONFIG_RULE, E, I, "List every graded path in the root-level artifacts."),
    Rule("artifact-path", Reason.CONFIG_RULE, E, W, "Use absolute paths outside /logs, /tests and /solution."),
    Rule("config-steps", Reason.CONFIG_RULE, E, I, "Make one task of one step."),
    Rule("config-service", Reason.CONFIG_RULE, E, W, "Do without GPUs, MCP servers, compose services and prebuilt images."),
    Rule("config-os", Reason.CONFIG_RULE, E, W, "Target Linux."),
    Rule("host-variable", Reason.CONFIG_RULE, E, E, "Write the value into task.toml, or do without: a gate never hands host variables to a task."),
    Rule("host-variable-default", Reason.CONFIG_RULE, E, W, "Write the value into task.toml instead of a host variable with a default."),
)

_TEXTS = (
    Rule("shell-crlf", Reason.SHELL_SYNTAX, E, E, "Store the script with Unix line ends."),
    Rule("shell-not-utf8", Reason.SHELL_SYNTAX, E, W, "Store the script as UTF-8."),
    Rule("shell-bom", Reason.SHELL_SYNTAX, E, E, "Remove the byte order mark: the kernel does not see the first line's interpreter."),
    Rule("shell-tangled", Reason.SHELL_SYNTAX, E, E, "Write the script plainly: thousands of nested or chained commands cannot be checked."),
    Rule("shell-no-interpreter", Reason.SHELL_SYNTAX, E, W, "Begin the script with #!/bin/bash."),
    Rule("shell-syntax", Reason.SHELL_SYNTAX, E, E, "Mend the script until `bash -n` accepts it."),
    Rule("rubric-missing", Reason.RUBRIC_INVALID, E, W, "Write tests/rubric.md with Must-do, Must-avoid and Best-practice."),
    Rule("rubric-section", Reason.RUBRIC_INVALID, E, W, "Use exactly the sections Must-do, Must-avoid and Best-practice, in this order."),
    Rule("rubric-bullets", Reason.RUBRIC_INVALID, E, W, "Write one to three bullets in each section."),
    Rule("metric-map-missing", Reason.METRIC_UNSOURCED, E, W, "Quote a sentence of instruction.md for every metric."),
    Rule("metric-count", Reason.METRIC_UNSOURCED, E, W, "Grade with two to six metrics."),
    Rule("metric-unsourced", Reason.METRIC_UNSOURCED, E, E, "Quote the sentence of instruction.md word for word, or say it there."),
    Rule("contract-missing", Reason.CONTRACT_INVALID, E, W, "Write contract.json as the prompt's schema says."),
)

_DOCKERFILE = (
    Rule("dockerfile-syntax", Reason.DOCKERFILE_RULE, E, E, "Mend the Dockerfile's syntax."),
    Rule("dockerfile-unpinned", Reason.DOCKERFILE_RULE, E, W, "Name the base image by digest."),
    Rule("dockerfile-stages", Reason.DOCKERFILE_RULE, E, W, "Use one stage."),
    Rule("dockerfile-copies-private", Reason.PRIVATE_LEAK, E, E, "Copy nothing from tests/ or solution/ into the agent's image."),
    Rule("dockerfile-leaves-context", Reason.DOCKERFILE_RULE, E, E, "Copy only from inside the build context."),
    Rule("dockerfile-download", Reason.DOCKERFILE_RULE, E, E, "Store the file in environment/ instead of ADD with a URL."),
    Rule("dockerfile-instruction", Reason.DOCKERFILE_RULE, E, W, "Use only the instructions of the task format."),
    Rule("dockerfile-agent-user", Reason.DOCKERFILE_RULE, E, W, "Create the agent's user in the Dockerfile and leave USER at root."),
)

_STATIC = (
    Rule("dockerfile-latest", Reason.DOCKERFILE_RULE, E, E, "Name the base image by digest, or at least by a version."),
    Rule("dockerfile-variable-base", Reason.DOCKERFILE_RULE, E, W, "Write the image reference into FROM instead of a build argument."),
    Rule("dockerfile-platform", Reason.DOCKERFILE_RULE, E, W, "Leave --platform out: it forces emulation on other machines."),
    Rule("dockerfile-unpinned-package", Reason.DOCKERFILE_RULE, E, W, "Write the version of every package behind its name."),
    Rule("dockerfile-fetch", Reason.DOCKERFILE_RULE, E, W, "Store the file in environment/ instead of downloading it while building."),
    Rule("not-executable", Reason.DOCKERFILE_RULE, W, W, "Make the script executable, or start it with its interpreter."),
    Rule("bare-nproc", Reason.SURROUNDINGS, W, I, "Write a number of processes: containers see the processors of the whole machine."),
    Rule("rubric-boilerplate", Reason.RUBRIC_INVALID, E, W, "Write bullets that speak about this task."),
    Rule("rubric-contradicts", Reason.RUBRIC_INVALID, E, W, "Make rubric and instruction say the same."),
    Rule("fetch-grading", Reason.NETWORK_NEEDED, E, E, "Install what grading needs in the image and store what it compares with in tests/."),
    Rule("fetch-solving", Reason.NETWORK_NEEDED, E, E, "Give the agent what it needs in the image: the task runs without a network."),
    Rule("fetch-solving-online", Reason.NETWORK_NEEDED, E, W, "Store what is downloaded in environment/, or be sure that it never changes."),
    Rule("fetch-guarded", Reason.NETWORK_NEEDED, W, W, "Install it in the image, so that the case never arises."),
    Rule("injection", Reason.INJECTION, E, E, "Remove the sentence, or make the fixture's text one that orders nobody."),
    Rule("injection-topic", Reason.INJECTION, W, W, "Make sure that the text is data of the task and orders nobody to cheat."),
    Rule("secret", Reason.SECRET, E, E, "Remove the credential and revoke it."),
    Rule("secret-fixture", Reason.SECRET, W, W, "Make sure that it is invented, and say so in it."),
    Rule("archive-unreadable", Reason.SECRET, W, W, "Make it an archive that can be read without a password, or leave it out: nobody has searched it for keys."),
    Rule("instruction-solves", Reason.SOLUTION_GIVEN, E, E, "Say what is wanted, not the commands that make it."),
    Rule("instruction-hints", Reason.SOLUTION_GIVEN, W, W, "Say what is wanted, not the commands that make it."),
    Rule("solution-reads-tests", Reason.SOLUTION_GIVEN, E, E, "Compute the result from what the agent is given."),
    Rule("solution-writes-reward", Reason.SOLUTION_GIVEN, E, E, "Do the work and leave the reward to the verifier."),
    Rule("solution-constant", Reason.SOLUTION_GIVEN, E, E, "Compute the result from the inputs instead of printing it."),
    Rule("solution-constant-short", Reason.SOLUTION_GIVEN, W, W, "Compute the result from the inputs instead of printing it."),
    Rule("host-dependent", Reason.SURROUNDINGS, E, E, "Put the value into a file of the task instead of reading it from the machine."),
    Rule("clock-read", Reason.SURROUNDINGS, W, W, "Give the day as a value in the task: a result that depends on it rots."),
    Rule("answer-in-image", Reason.PRIVATE_LEAK, E, E, "Remove the file from the image, or make it an input that the instruction names."),
    Rule("name-undeclared", Reason.UNDECLARED, E, E, "State the names of all graded fields in the instruction."),
    Rule("name-unclear", Reason.UNDECLARED, W, W, "State the names of all graded fields in the instruction."),
    Rule("path-undeclared", Reason.UNDECLARED, E, E, "State the paths of all graded files in the instruction."),
    Rule("layout-undeclared", Reason.UNDECLARED, E, E, "Describe the layout in the instruction, or accept every layout that it allows."),
    Rule("date-near-today", Reason.SURROUNDINGS, W, W, "Use days long past and never compare them with the clock."),
)

_IMAGE = (
    Rule("build-failed", Reason.BUILD_FAILED, E, E, "Read the build log in the evidence and mend the named step."),
    Rule("pin-mismatch", Reason.PIN_MISMATCH, E, E, "Name the digest of the image that is really used."),
    Rule("pin-missing", Reason.PIN_MISMATCH, E, W, "Name the base image by digest."),
    Rule("leak-content", Reason.PRIVATE_LEAK, E, E, "Keep the verifier, the solution and the rubric out of the agent's image."),
    Rule("leak-answer-name", Reason.PRIVATE_LEAK, W, W, "Make sure that the file is an input and no answer."),
    Rule("leak-lines", Reason.PRIVATE_LEAK, E, E, "Keep the verifier, the solution and the rubric out of the agent's image."),
    Rule("leak-path", Reason.PRIVATE_LEAK, E, W, "Do not use /tests, /solution or the names of private files in the agent's image."),
    Rule("leak-history", Reason.PRIVATE_LEAK, E, E, "Remove .git, or squash it so that no commit holds the answer."),
    Rule("history", Reason.PRIVATE_LEAK, E, W, "Remove .git and shell histories from the image."),
    Rule("leak-hidden-layer", Reason.PRIVATE_LEAK, E, W, "Never copy a private file and delete it later: the layer keeps it."),
    Rule("leak-not-scanned", Reason.PRIVATE_LEAK, W, W, "Run again with --sandbox namespace to scan the image."),
)

_TRIALS = (
    Rule("task-unloadable", Reason.MALFORMED, E, E, "Mend the task until Harbor loads it."),
    Rule("verifier-hung", Reason.VERIFIER_HUNG, E, E, "Run untrusted programs with a time limit and end within a minute."),
    Rule("nop-failed", Reason.NOP_FAILED, E, E, "Make the verifier write zeros when nothing was delivered."),
    Rule("nop-rewarded", Reason.NOP_REWARDED, E, E, "Make every metric 0 for an untouched environment."),
    Rule("oracle-error", Reason.ORACLE_ERROR, E, E, "Mend solution/solve.sh: it must exit 0 within the agent's time limit."),
    Rule("oracle-failed", Reason.ORACLE_FAILED, E, E, "Mend the reference solution, or a metric that it cannot satisfy."),
    Rule("metrics-differ", Reason.REWARD_DISAGREES, E, E, "Write the same metric names whatever was delivered."),
    Rule("metrics-undeclared", Reason.REWARD_DISAGREES, E, W, "Write exactly the metrics that the contract names, and reward."),
    Rule("reward-total", Reason.REWARD_DISAGREES, E, I, "Write reward as the mean of the other metrics."),
    Rule("reward-text-missing", Reason.REWARD_DISAGREES, E, I, "Write reward.txt with the same number as reward."),
    Rule("twin", Reason.DUPLICATE, E, E, "Leave the task out, or give it other work to do: names and numbers make no other task."),
    Rule("unstable", Reason.UNSTABLE, E, E, "Remove chance, time and set order from the verifier and the solution."),
)

_STATE = (
    Rule("grading-remembers", Reason.STATEFUL, E, E, "Grade from the delivered files alone, and store nothing outside /logs/verifier."),
    Rule("grading-spoils", Reason.STATEFUL, E, E, "Work on copies, and leave the delivered files and the container as they were."),
    Rule("grading-spoils-own", Reason.STATEFUL, W, I, "Work on copies, so that the same container can grade twice."),
    Rule("solution-once", Reason.STATEFUL, I, I, "Write the solution so that running it again changes nothing."),
    Rule("clock", Reason.SURROUNDINGS, E, E, "Compare with the clock of the same run, or pin the date that the task speaks of in its text."),
    Rule("clock-past", Reason.SURROUNDINGS, E, W, "Compare with the clock of the same run, or pin the date that the task speaks of in its text."),
    Rule("zone", Reason.SURROUNDINGS, E, W, "Compute in UTC, or set TZ in test.sh and in the solution."),
    Rule("locale", Reason.SURROUNDINGS, E, W, "Set LC_ALL=C.UTF-8 in test.sh and in the solution."),
    Rule("machine", Reason.SURROUNDINGS, E, E, "Ask for nothing that depends on the machine: host name, memory, number of processors."),
    Rule("machine-answer", Reason.SURROUNDINGS, E, E, "Ask for an answer that is the same on every machine, so that it can be graded again elsewhere."),
    Rule("package-tools", Reason.SURROUNDINGS, E, W, "Install in the Dockerfile whatever grading needs."),
    Rule("start-folder", Reason.SURROUNDINGS, E, I, "Use absolute paths in test.sh, or change to its folder first."),
    Rule("hash-seed", Reason.SURROUNDINGS, E, E, "Sort sets and the like before anything depends on their order."),
    Rule("folder-order", Reason.SURROUNDINGS, E, E, "Sort what is listed from folders before anything depends on the order."),
    Rule("user", Reason.SURROUNDINGS, E, W, "Name every path in full in the instruction, and ask for nothing that follows from who runs the solution."),
    Rule("tests-read-only", Reason.SURROUNDINGS, E, W, "Work in a temporary folder: some consumers mount /tests read-only."),
    Rule("tests-written", Reason.SURROUNDINGS, W, I, "Write nothing below /tests; some consumers mount it read-only."),
    Rule("network-needed", Reason.NETWORK_NEEDED, E, W, "Put what is fetched into the image or the tests, and run without a network."),
    Rule("form", Reason.BRITTLE, E, E, "Parse what is delivered instead of comparing its text, or say in the instruction how it is to be written."),
    Rule("form-likely", Reason.BRITTLE, E, W, "Parse what is delivered instead of comparing its text, or say in the instruction how it is to be written."),
    Rule("alternative-failed", Reason.ALTERNATIVE_FAILED, E, E, "Make the verifier accept every right way, or remove the alternative."),
)

_CHEATS = (
    Rule("cheat", Reason.CHEATABLE, E, E, "Make the verifier compare what was delivered with a truth of its own, out of the agent's reach."),
    Rule("cheat-rewards", Reason.CHEATABLE, E, E, "Begin test.sh with `chmod 755 /logs/verifier` as root, or use a separate verifier: the folder of rewards is open to everybody, and what the agent started in the background runs on."),
    Rule("cheat-share", Reason.CHEATABLE, E, W, "Give no share of a metric for what can be written without doing the work."),
    Rule("cheat-truth", Reason.CHEATABLE, E, E, "Recompute the truth from private copies of the inputs in tests/, never from files that the agent may change."),
    Rule("cheat-status", Reason.CHEATABLE, E, E, "Check the work itself; a file in which the agent says that it is done proves nothing."),
    Rule("cheat-link", Reason.CHEATABLE, E, W, "Refuse links among what was delivered: they may point to the verifier's own files."),
    Rule("cheat-wait", Reason.CHEATABLE, W, W, "Read only regular files, and run what was delivered with a time limit."),
    Rule("cheat-root", Reason.CHEATABLE, W, W, "Run the agent as an unprivileged user, or the verifier in a container of its own."),
    Rule("verifier-weak", Reason.WEAK_VERIFIER, E, E, "Compare whole results with recomputed ones until wrong solutions lose reward; the evidence lists those that did not."),
)

_BOTH = {
    RewardProblem.BOOLEAN: (E, W),
    RewardProblem.DUPLICATE: (E, W),
    RewardProblem.TEXT_UNREADABLE: (E, W),
}
_DISAGREES = (RewardProblem.TEXT_DISAGREES,)
_REWARD = tuple(
    Rule(
        problem.value,
        Reason.REWARD_DISAGREES if problem in _DISAGREES else Reason.REWARD_INVALID,
        *_BOTH.get(problem, (E, E)),
        "Write reward.json as one flat object of numbers in [0,1], and the same total in reward.txt.",
    )
    for problem in RewardProblem
)

_ASSETS = (
    Rule("asset-address", Reason.ASSET_REFUSED, E, E, "Name the file by a public https address."),
    Rule("asset-redirects", Reason.ASSET_UNAVAILABLE, E, E, "Name the address that the file has in the end."),
    Rule("asset-missing", Reason.ASSET_UNAVAILABLE, E, E, "Name an address that exists, with a revision, or use the fallback."),
    Rule("asset-server", Reason.ASSET_UNAVAILABLE, E, E, "Name another address of the file, or use the fallback."),
    Rule("asset-unreachable", Reason.ASSET_UNAVAILABLE, E, E, "Name a host that exists, or use the fallback."),
    Rule("asset-truncated", Reason.ASSET_UNAVAILABLE, E, E, "Name another address of the file, or use the fallback."),
    Rule("asset-slow", Reason.ASSET_UNAVAILABLE, E, E, "Name a quicker address or a smaller file, or use the fallback."),
    Rule("asset-too-large", Reason.ASSET_REFUSED, E, E, "Choose a smaller file, or raise assets.max_file_mb and assets.max_total_mb."),
    Rule("asset-web-page", Reason.ASSET_UNAVAILABLE, E, E, "Name the address of the file itself, not of a page that shows it."),
    Rule("asset-offline", Reason.ASSET_UNAVAILABLE, E, E, "Write the file yourself, or let the host download (assets.download)."),
    Rule("asset-digest", Reason.ASSET_CHANGED, E, E, "Pin the address to a revision and state that file's digest, or leave the digest out."),
    Rule("asset-differs", Reason.ASSET_CHANGED, E, E, "Leave the file to the host, or store exactly what the address serves."),
    Rule("asset-licence", Reason.ASSET_REFUSED, E, E, "Choose a file under allowed terms and give licence_url, or write one yourself."),
    Rule("author-credential", Reason.AUTHOR_CREDENTIAL, E, E, "Revoke the key, and use an author that keeps it out of the sandbox (`builtin`)."),
    Rule("origin-undeclared", Reason.ASSET_REFUSED, W, W, "Declare it in contract.json as an asset, or under `generated` with the script that made it."),
)

_LINT = (
    Rule("harbor-lint:invalid-task-config", Reason.MALFORMED, E, E, "Mend task.toml until Harbor's schema accepts it."),
    Rule("harbor-lint:compose-privileged", Reason.LINT, E, E, "Do without privileges over the machine that runs the task."),
    Rule("harbor-lint:compose-external-bind-mount", Reason.LINT, E, E, "Copy what the services need into the task instead of mounting the machine's files."),
    Rule("harbor-lint", Reason.LINT, E, W, "Run `harbor lint --select ALL` on the task and mend what it names."),
)
# fmt: on

RULES: tuple[Rule, ...] = (
    *_FILES,
    *_CONFIG,
    *_TEXTS,
    *_DOCKERFILE,
    *_STATIC,
    *_LINT,
    *_ASSETS,
    *_IMAGE,
    *_TRIALS,
    *_STATE,
    *_CHEATS,
    *_REWARD,
)
"""All rules, in the order of the gates that check them."""


@cache
def _by_code() -> dict[str, Rule]:
    return {rule.code: rule for rule in RULES}


def rule_of(code: str) -> Rule:
    """The rule of a finding's code; a code with a suffix (``harbor-lint:NAME``) falls back to its prefix.

    Raises:
        KeyError: there is no such rule; a bug of ours.
    """
    table = _by_code()
    return table[code] if code in table else table[code.partition(":")[0]]
