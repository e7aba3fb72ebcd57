"""Sandboxes on the default base image, started as whoever runs the tests, in the best tier that this user has."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from skill2env.sandbox.doctor import namespace_works
from skill2env.sandbox.images import ensure_base
from skill2env.sandbox.session import Sandbox, SandboxSpec


@pytest.fixture(scope="session")
def rootfs() -> Path:
    """Root file system of the default base; skips where sandboxes cannot start."""
    if not namespace_works():
        pytest.skip("this machine forbids the namespace sandbox: see `skill2env doctor`")
    return ensure_base().rootfs


@pytest.fixture(scope="module")
def box(rootfs: Path) -> Iterator[Sandbox]:
    """A sandbox that the tests of a module share."""
    with Sandbox(SandboxSpec(layers=(rootfs,))) as sandbox:
        yield sandbox


@pytest.fixture
def new_box(rootfs: Path) -> Iterator[Callable[..., Sandbox]]:
    """Starts sandboxes with settings of their own."""
    with ExitStack() as stack:

        def make(**settings: Any) -> Sandbox:
            return stack.enter_context(Sandbox(SandboxSpec(layers=(rootfs,), **settings)))

        yield make
