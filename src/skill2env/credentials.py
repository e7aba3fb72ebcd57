"""No task holds a key that its author was given; what is looked for and how is said in `keys`."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from skill2env.keys import contents_of, keys_held
from skill2env.records import Finding, GateOutcome, GateResult, Reason, Severity, Verdict, VerdictStatus
from skill2env.verify.rules import rule_of

GATE = "credentials"
CODE = "author-credential"


def credential_found(task_dir: Path, texts: Mapping[str, str], keys: Mapping[str, str]) -> Verdict | None:
    """The rejection of a task that holds one of `keys`; None when it holds none.

    Args:
        task_dir: the task's folder; links are not followed.
        texts: what else becomes part of the task, by the name that findings give it.
        keys: what each is called -> its value. Neither is ever part of a message but the name.
    """
    findings = [
        Finding(
            code=CODE,
            severity=Severity.ERROR,
            message=held.words,
            where=held.where,
            mend=rule_of(CODE).mend,
        )
        for held in keys_held(_contents(task_dir, texts), keys)
    ]
    if not findings:
        return None
    message = f"{GATE}: {findings[0].where} {findings[0].message}; revoke it, the run folder holds it as well"
    gate = GateResult(
        gate=GATE,
        outcome=GateOutcome.REJECTED,
        reason=Reason.AUTHOR_CREDENTIAL,
        message=message,
        findings=tuple(findings[:50]),
    )
    return Verdict(
        status=VerdictStatus.REJECTED, reason=Reason.AUTHOR_CREDENTIAL, message=message, gates=(gate,)
    )


def _contents(task_dir: Path, texts: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    for name, text in sorted(texts.items()):
        yield name, text.encode()
    yield from contents_of(
        task_dir, (path.relative_to(task_dir).as_posix() for path in sorted(task_dir.rglob("*")))
    )
