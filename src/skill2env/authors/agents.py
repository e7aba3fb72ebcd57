"""The authors that are agents: the built-in one, and every one that Harbor knows."""

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from skill2env.authors.agent import AgentAuthor
from skill2env.authors.agent_task import Room
from skill2env.authors.registry import HARBOR_PREFIX, AuthorSettings
from skill2env.errors import UserError
from skill2env.harbor.sandboxes import SandboxChoice, choose_sandbox
from skill2env.llm.prices import PriceTable
from skill2env.llm.settings import NO_KEY, check_address, model_settings, read_key
from skill2env.llm.throttle import throttle_of
from skill2env.records import digest_bytes
from skill2env.sandbox.base_store import recipe_digest
from skill2env.sandbox.catalog import DEFAULT_BASE
from skill2env.sandbox.containers import ensure_base

_ON_THE_HOST: dict[str, dict[str, Any]] = {
    # A recording of the terminal corrupts long input, and the other limits have no end of their own.
    "terminus-2": {
        "record_terminal_session": False,
        "suppress_max_turns_warning": True,
        "max_turns": 200,
        "llm_kwargs": {"timeout": 180, "max_retries": 0},
    },
    "dspy-rlm": {},
    "computer-1": {},
}
"""Agents of Harbor's that call their model from the host, with options under which they end and write true bytes."""
_KEY_OF = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""Provider, as it stands before the name of a model -> where its library looks for the key."""
_CREDENTIAL = re.compile(r"(?i)(?:^|_)(?:api_?key|key|token|secret|password|passwd|credentials?|auth)(?:$|_)")
_SHORTEST_KEY = 8
_SILENT = frozenset({"api_base", "key_variable", "prices", "attempts", "stall_sec", "stream", "at_once"})
_TOOLS_OFFLINE = ("bash", "read_file", "write_file", "edit_file")


def make_builtin(settings: AuthorSettings) -> AgentAuthor:
    """The built-in agent with a model.

    Raises:
        UserError: no model, no key, or settings that are wrong.
    """
    if not settings.model:
        raise UserError("the builtin author needs a model", hint="give one with --model NAME")
    model = model_settings(
        settings.model, api=settings.api, base_url=settings.api_base, key_variable=settings.key_variable
    )
    read_key(model)
    options: dict[str, Any] = {
        "api": model.api.value,
        "api_base": settings.api_base,
        "key_variable": settings.key_variable,
        "prices": str(settings.prices) if settings.prices else "",
        "at_once": settings.requests_at_once,
        **({"tools": _TOOLS_OFFLINE} if settings.network == "no-network" else {}),
        **settings.options,
    }
    from skill2env.harbor.builtin import BUILTIN_AGENT

    made = _author(
        "builtin", BUILTIN_AGENT, model.name, settings, {k: v for k, v in options.items() if v != ""}
    )
    return replace(made, throttle=None, held=lambda: {model.key_name: read_key(model)})


def make_harbor_agent(name: str, settings: AuthorSettings) -> AgentAuthor:
    """An agent of Harbor's, unchanged; its own options say how it is called.

    Raises:
        UserError: Harbor knows no such agent.
    """
    from skill2env.harbor.agent_names import agent_names

    wanted = name.removeprefix(HARBOR_PREFIX)
    known = agent_names()
    if ":" not in wanted and wanted not in known:
        raise UserError(f"Harbor knows no agent {wanted!r}", hint=f"there are: {', '.join(known)}")
    _need_key(wanted, settings)
    if wanted in _ON_THE_HOST:
        base = {"api_base": settings.api_base} if settings.api_base else {}
        options = {**_ON_THE_HOST[wanted], **base, **settings.options}
        return _author(name, wanted, settings.model, settings, options)
    prebuilt = {"skip_install": True} if settings.agent_dockerfile else {}
    made = _author(name, wanted, settings.model, settings, {**prebuilt, **settings.options})
    return replace(made, base_url=settings.api_base, sandbox=cache(lambda: _with_agent(settings)))


def _need_key(agent: str, settings: AuthorSettings) -> None:
    """See that there is a key where one is needed, before a session is lost to its absence.

    Model libraries do not start without a key, also for a server of one's own that asks for none.

    Raises:
        UserError: an agent that calls a public endpoint from this process has none.
    """
    variable = _KEY_OF.get(settings.model.partition("/")[0], "")
    if not variable or os.environ.get(variable, "").strip() or credentials_in({}, settings.options):
        return
    if settings.api_base:
        os.environ[variable] = NO_KEY
    elif agent in _ON_THE_HOST:
        raise UserError(
            f"no key for {settings.model}: {variable} is not set",
            hint=f"set {variable}, or give the address of a server of your own with --api-base",
        )


def credentials_in(environment: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, str]:
    """What looks like a credential among the variables of this process and an agent's options, by name.

    Agents of Harbor's take theirs from either, each in its own way, so whatever is called one counts as given.
    """
    found = {name: value for name, value in environment.items() if _CREDENTIAL.search(name)}
    for name, value in options.items():
        if isinstance(value, Mapping):
            found |= credentials_in({}, cast("Mapping[str, Any]", value))
        elif isinstance(value, str) and _CREDENTIAL.search(name):
            found[name] = value
    return {name: value for name, value in found.items() if _is_credential(value)}


def _is_credential(value: str) -> bool:
    """Whether a value could be one: not a path, an address, a sentence or a switch."""
    is_place = value.startswith(("/", "./", "~")) or "://" in value
    return len(value) >= _SHORTEST_KEY and not is_place and not re.search(r"\s", value)


def _prices(model: str, settings: AuthorSettings) -> PriceTable:
    """The table in force; refused when what sessions cost is limited and it does not know the model."""
    prices = PriceTable.of(settings.prices)
    if settings.limited and prices.find(model) is None:
        raise UserError(
            f"the model {model or '(none)'} has no price, so its cost cannot be limited",
            hint="give its price in a TOML file with --prices, or leave the limits out",
        )
    return prices


def _with_agent(settings: AuthorSettings) -> SandboxChoice:
    """The sandbox of an agent that runs inside: its own image on ours, and the way to a model of this machine."""
    choice = choose_sandbox(settings.sandbox)
    more: dict[str, Any] = {}
    if settings.agent_dockerfile:
        more["agent_dockerfile"] = str(settings.agent_dockerfile)
    parts = check_address(settings.api_base) if settings.api_base else urlsplit("")
    if parts.hostname and _is_this_machine(parts.hostname):
        port = parts.port or (443 if parts.scheme == "https" else 80)
        more["private_hosts"] = [f"{parts.hostname}:{port}"]
    if more and not choice.import_path:
        raise UserError(
            f"the sandbox {choice.name} cannot take an agent's image or a model of this machine",
            hint="use --sandbox namespace, docker or podman, which are ours",
        )
    return replace(choice, kwargs={**choice.kwargs, **more})


def _is_this_machine(host: str) -> bool:
    return host in {"localhost", "::1"} or host.startswith("127.")


def _author(
    name: str, agent: str, model: str, settings: AuthorSettings, options: dict[str, Any]
) -> AgentAuthor:
    @cache
    def sandbox() -> SandboxChoice:
        return choose_sandbox(settings.sandbox)

    def base() -> str:
        return ensure_base(DEFAULT_BASE).reference

    determines = {"base": recipe_digest(DEFAULT_BASE)}
    if settings.agent_dockerfile:
        determines["agent_dockerfile"] = _file_digest(settings.agent_dockerfile)
    return AgentAuthor(
        held=lambda: credentials_in(os.environ, settings.options),
        name=name,
        agent=agent,
        model=model,
        sandbox=sandbox,
        base=base,
        options=options,
        silent=_SILENT,
        determines=determines,
        room=Room(timeout_sec=settings.timeout_sec, network=settings.network, hosts=settings.hosts),
        prices=_prices(model, settings),
        throttle=throttle_of(settings.api_base or f"public {agent}", settings.requests_at_once),
    )


def _file_digest(path: Path) -> str:
    try:
        return digest_bytes(path.read_bytes())
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}", hint="give a Dockerfile with --agent-dockerfile"
        ) from None
