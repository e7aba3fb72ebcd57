"""Errors arrive from other processes as what they were."""

import copy
import importlib
import multiprocessing
import pickle
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import skill2env
from skill2env.authors.protocol import AllowanceSpent, AuthorFailed
from skill2env.errors import Boundary, BudgetReached, InfraError, Skill2EnvError, UserError
from skill2env.hub.tar_stream import BadArchive
from skill2env.llm.failures import ProviderError, ProviderFault
from skill2env.records import Usage
from skill2env.sandbox.agent_image import AgentImageFailed
from skill2env.sandbox.conditions import NotApplicable
from skill2env.sandbox.expand import ExpansionError
from skill2env.sandbox.instructions import BuildFailed

USAGE = Usage()
ERRORS = [
    Skill2EnvError("a", hint="b"),
    UserError("a", hint="b"),
    BudgetReached("a", hint="b"),
    InfraError(Boundary.STORAGE, "disk full", hint="make room", transient=False),
    BadArchive("a", hint="b"),
    AllowanceSpent("a", usage=USAGE, hint="b"),
    AuthorFailed(Boundary.AUTHOR, "a", usage=USAGE, transient=False, hint="b"),
    ProviderError(next(iter(ProviderFault)), "a", retry_after=1.5),
    AgentImageFailed(Path("Dockerfile"), "no stage"),
    NotApplicable("no cgroup"),
    ExpansionError("a"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_every_error_survives_pickle_and_copy(error: Skill2EnvError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert vars(again) == vars(error)
        assert (again.args, str(again)) == (error.args, str(error))


def test_no_error_of_the_tree_rebuilds_itself_otherwise() -> None:
    for module in pkgutil.walk_packages(skill2env.__path__, "skill2env."):
        if module.name.rpartition(".")[2] in ("failures", "protocol", "errors", "unpack", "instructions"):
            importlib.import_module(module.name)
    kinds = [Skill2EnvError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    assert {AuthorFailed, ProviderError, BuildFailed} <= set(kinds)
    assert {kind.__reduce__ for kind in kinds} == {Skill2EnvError.__reduce__}


def _fail() -> None:
    raise InfraError(Boundary.STORAGE, "disk full", hint="make room", transient=False)


def test_a_worker_process_says_what_failed() -> None:
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(1, mp_context=context) as pool, pytest.raises(InfraError) as caught:
        pool.submit(_fail).result()
    assert (caught.value.boundary, caught.value.message, caught.value.transient) == (
        Boundary.STORAGE,
        "disk full",
        False,
    )
