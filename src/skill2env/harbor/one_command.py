"""The smallest agent that can be trained: it sees the task, writes one shell command, and that is run.

For models that cannot follow the prompts of a full agent. With ``turns`` above 1 it sees what the command printed and
writes another one. Token ids and log-probabilities of every call are kept in Harbor's own record of a trial, where
`rollout` finds them, if the server gives them: it is asked with ``return_token_ids``, as vLLM is.

Usable by strangers as ``harbor run -a skill2env.harbor.one_command:OneCommandAgent -m MODEL --ak api_base=URL``.
"""

from dataclasses import dataclass, field
from typing import Any, override

import httpx
from harbor.agents.base import BaseAgent
from harbor.agents.installed.base import (
    ApiConnectionClosedError,
    ApiError,
    ContextWindowExceededError,
    NetworkConnectionError,
)
from harbor.agents.options import AgentOptions
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from harbor.models.agent.rollout_detail import RolloutDetail
from pydantic import Field

from skill2env import __version__
from skill2env.harbor.atif import to_trajectory
from skill2env.harbor.tools import EnvironmentTools
from skill2env.llm.compaction import shortened
from skill2env.llm.dialogue import Role, TokenUsage, ToolCall, Turn
from skill2env.llm.loop import Session
from skill2env.records import canonical_json
from skill2env.store.files import write_json

ONE_COMMAND_AGENT = "skill2env.harbor.one_command:OneCommandAgent"
"""Import path, as ``run_trial`` and ``harbor run -a`` take it."""
OUTPUT_CHARS = 400
"""Characters of a command's output that the next turn is shown."""
_BASH = "bash"

RULES = """\
You are given a job for a Linux shell. Answer with one bash command that does it, on one line, and nothing else."""
_SHOWN = (
    ("Make a folder named /srv/parts.", "mkdir -p /srv/parts"),
    ("Write the word larch into the file /srv/tree.txt.", "echo larch > /srv/tree.txt"),
    ("Add the line done to the end of /srv/log.txt.", "echo done >> /srv/log.txt"),
)
"""Jobs with an answer that the model is shown first; their paths and words occur in no task of ours."""


class OneCommandOptions(AgentOptions):
    """Options of `OneCommandAgent`."""

    api_base: str
    """Address of a server of chat completions: ``http://127.0.0.1:PORT/v1``."""
    turns: int = Field(default=1, ge=1, le=50)
    """Commands at most."""
    max_output_tokens: int = Field(default=32, ge=1)
    temperature: float = Field(default=1.0, ge=0)
    seed: int = 0
    """Given on to the server, together with the attempt and the turn."""
    attempt: int = 0
    """Which of several rollouts of the same task this is."""
    rules: str = RULES
    shown: bool = True
    """Show three solved jobs first; a small model does nothing useful without."""
    command_sec: int = Field(default=20, ge=1)
    answer_sec: float = Field(default=600, gt=0)
    """How long one answer of the server may take."""


class OneCommandAgent(BaseAgent):
    """See the module."""

    options_model = OneCommandOptions
    options: OneCommandOptions

    @staticmethod
    @override
    def name() -> str:
        return "skill2env-one-command"

    @override
    def version(self) -> str:
        return __version__

    @override
    def _init_model_info(self) -> None:
        # Harbor's way to split a name imports a library that takes seconds.
        self._parsed_model_provider = None
        self._parsed_model_name = self.model_name or None

    @override
    async def setup(self, environment: BaseEnvironment) -> None:
        """Nothing to install."""

    @override
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        """Ask for a command, run it, and again as often as there are turns.

        Raises:
            ApiError: and its relatives in Harbor, when the server failed or its answer is none.
        """
        messages = self._opening(instruction)
        session = Session([Turn(Role.SYSTEM, self._told()), Turn(Role.USER, instruction.strip())])
        tools = EnvironmentTools(environment, (_BASH,))
        detail = _Tokens()
        async with httpx.AsyncClient(timeout=self.options.answer_sec, trust_env=False) as client:
            try:
                for turn in range(self.options.turns):
                    reply = await self._ask(client, messages, turn)
                    text = _remember(reply, detail, session)
                    command = text.strip()
                    if not command:
                        break
                    result = await self._execute(tools, command, turn, session)
                    messages += [
                        {"role": "assistant", "content": text},
                        {"role": "user", "content": shortened(result, OUTPUT_CHARS)},
                    ]
            finally:
                self._write(session, detail, context)

    def _opening(self, instruction: str) -> list[dict[str, str]]:
        messages = [{"role": "system", "content": self.options.rules}]
        for job, answer in _SHOWN if self.options.shown else ():
            messages += [{"role": "user", "content": job}, {"role": "assistant", "content": answer}]
        return [*messages, {"role": "user", "content": instruction.strip()}]

    def _told(self) -> str:
        """What the model is told beside the task, as one text: jobs it was shown are nothing that it did."""
        shown = "".join(f"\n\nJob: {job}\nCommand: {answer}" for job, answer in _SHOWN if self.options.shown)
        return self.options.rules + shown

    async def _ask(
        self, client: httpx.AsyncClient, messages: list[dict[str, str]], turn: int
    ) -> dict[str, Any]:
        options = self.options
        asked = {
            "model": self.model_name or "policy",
            "messages": messages,
            "max_tokens": options.max_output_tokens,
            "temperature": options.temperature,
            "seed": options.seed * 1_000_000 + options.attempt * 1000 + turn,
            "stop": ["\n"],
            "logprobs": True,
            "return_token_ids": True,
        }
        try:
            reply = await client.post(f"{options.api_base.rstrip('/')}/chat/completions", json=asked)
        except httpx.TransportError as error:
            raise NetworkConnectionError(f"{options.api_base} cannot be asked: {error!r}") from error
        if reply.status_code == 400 and "context_length_exceeded" in reply.text:
            raise ContextWindowExceededError(f"the dialogue is too long for {options.api_base}")
        if reply.status_code != 200:
            raise ApiError(f"{options.api_base} answered {reply.status_code}: {reply.text[:300]}")
        try:
            document = reply.json()
            document["choices"][0]["message"]["content"]
        except (ValueError, LookupError, TypeError) as error:
            raise ApiConnectionClosedError(
                f"{options.api_base} gave no chat completion: {error!r}"
            ) from error
        return document

    async def _execute(self, tools: EnvironmentTools, command: str, turn: int, session: Session) -> str:
        arguments = {"command": command, "timeout_sec": self.options.command_sec}
        call = ToolCall(f"call_{turn}", _BASH, canonical_json(arguments))
        session.turns[-1] = Turn(Role.ASSISTANT, session.turns[-1].text, (call,))
        result = await tools.call(_BASH, arguments)
        session.turns.append(Turn(Role.TOOL, result.text, answers=call.id))
        return result.text

    def _write(self, session: Session, detail: "_Tokens", context: AgentContext) -> None:
        usage = session.usage
        context.n_input_tokens, context.n_output_tokens = usage.input, usage.output
        context.rollout_details = [detail.record()] if any(detail.completions) else None
        context.metadata = {"turns": session.replies}
        trajectory = to_trajectory(
            session,
            agent=self.name(),
            version=self.version(),
            model=self.model_name or "",
            session_id=self.session_id or "",
            tools=EnvironmentTools.describe((_BASH,)),
            price=None,
        )
        write_json(self.logs_dir / "trajectory.json", trajectory.model_dump(mode="json", exclude_none=True))


def _remember(reply: dict[str, Any], detail: "_Tokens", session: Session) -> str:
    """Take a reply into the books; its text."""
    choice: dict[str, Any] = reply["choices"][0]
    text = str(choice["message"]["content"] or "")
    usage: dict[str, Any] = reply.get("usage") or {}
    session.turns.append(Turn(Role.ASSISTANT, text))
    session.replies += 1
    used = TokenUsage(int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0))
    session.usages[len(session.turns) - 1] = used
    session.bill(used)
    table: dict[str, Any] = choice.get("logprobs") or {}
    listed: list[dict[str, Any]] = table.get("content") or []
    detail.prompts.append(list(reply.get("prompt_token_ids") or []))
    detail.completions.append(list(choice.get("token_ids") or []))
    detail.log_probs.append([float(item["logprob"]) for item in listed])
    return text


@dataclass(slots=True)
class _Tokens:
    """Token ids and log-probabilities, one entry a call; empty entries where the server gives none."""

    prompts: list[list[int]] = field(default_factory=list[list[int]])
    completions: list[list[int]] = field(default_factory=list[list[int]])
    log_probs: list[list[float]] = field(default_factory=list[list[float]])

    def record(self) -> RolloutDetail:
        return RolloutDetail(
            prompt_token_ids=self.prompts, completion_token_ids=self.completions, logprobs=self.log_probs
        )
