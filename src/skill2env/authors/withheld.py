"""What a recording keeps of sessions in which a key of the author turned up: nothing that holds it.

A recording is made to be passed on. Files are stored as they are or not at all, because a changed file would replay as
another task; messages, which nobody replays, are left out one by one.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from skill2env.authors.protocol import Message, Refusal
from skill2env.authors.recording import RecordedPlan, RecordedSession
from skill2env.keys import UNNAMED, Held, contents_of, keys_held
from skill2env.records import Reason, Skipped, SkipReason

_SHOWN = 5
"""Places that are named; more say nothing new."""


class Withholding:
    """Keeps the keys of one author out of what is stored.

    Args:
        keys: what each is called -> its value.
    """

    def __init__(self, keys: Mapping[str, str]) -> None:
        self._keys = keys

    def in_files(self, folder: Path, paths: Iterable[str]) -> tuple[Held, ...]:
        """Keys in files of a session, in their names, and in what archives hold."""
        return tuple(keys_held(contents_of(folder, sorted(paths)), self._keys))

    def plan(self, plan: RecordedPlan) -> RecordedPlan:
        """The planning session as it may be stored."""
        messages, lost = self._messages(plan.messages)
        hosts, unsaid = self._hosts(plan.hosts)
        skipped, unheard = self._skip(plan.skipped)
        text = plan.text
        found = self.in_text("the answer", text)
        if found is not None:
            text = ""
            skipped = Skipped(reason=SkipReason.AUTHOR_GAVE_UP, detail=f"{_said(found)}, so it is not kept")
            lost = (_said(found), *lost)
        return plan.model_copy(
            update={
                "text": text,
                "skipped": skipped,
                "messages": messages,
                "hosts": hosts,
                "left_out": (*lost, *unsaid, *unheard),
            }
        )

    def session(self, session: RecordedSession, held: tuple[Held, ...]) -> RecordedSession:
        """A session as it may be stored.

        Args:
            session: as it ended.
            held: what `in_files` found; files are not stored then.
        """
        messages, lost = self._messages(session.messages)
        hosts, unsaid = self._hosts(session.hosts)
        skipped, unheard = self._skip(session.skipped)
        refused = session.refused
        names = self.in_text("a name", "\n".join((*session.deleted, refused.path if refused else "")))
        found = (*held, *([names] if names else []))
        if found:
            path = held[0].where.partition("!")[0] if held and held[0].where != UNNAMED else ""
            refused = Refusal(
                reason=Reason.AUTHOR_CREDENTIAL, path=path, message=f"{_said(found[0])}; revoke it"
            )
        return session.model_copy(
            update={
                "skipped": skipped,
                "refused": refused,
                "deleted": () if names else session.deleted,
                "messages": messages,
                "hosts": hosts,
                "left_out": (*map(_said, found[:_SHOWN]), *lost, *unsaid, *unheard),
            }
        )

    def in_text(self, where: str, text: str) -> Held | None:
        """The first key in a text that is called `where`."""
        return next(keys_held([(where, text.encode("utf-8", "surrogatepass"))], self._keys), None)

    def _messages(self, messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], tuple[str, ...]]:
        kept: list[Message] = []
        lost: list[str] = []
        for number, message in enumerate(messages, 1):
            found = self.in_text(f"message {number}", message.text)
            if found is not None:
                lost.append(_said(found))
                message = message.model_copy(update={"text": f"[left out: {found.words}]"})  # noqa: PLW2901
            kept.append(message)
        return tuple(kept), tuple(lost[:_SHOWN])

    def _hosts(self, hosts: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        found = {host: self.in_text("a host that was asked for", host) for host in hosts}
        kept = tuple(host for host in hosts if found[host] is None)
        return kept, tuple(dict.fromkeys(_said(held) for held in found.values() if held is not None))

    def _skip(self, skipped: Skipped | None) -> tuple[Skipped | None, tuple[str, ...]]:
        found = self.in_text("its reason", skipped.detail) if skipped else None
        if skipped is None or found is None:
            return skipped, ()
        return skipped.model_copy(update={"detail": f"[left out: {found.words}]"}), (_said(found),)


def _said(held: Held) -> str:
    return f"{held.where} {held.words}"
