"""Datasets in a Hugging Face dataset repository: push a folder, pull one. Needs the extra ``huggingface``.

Covers: any endpoint that speaks the hub's API, removal of files that left the dataset, a check of every pulled task
against ``dataset.toml``. Does not cover: tokens, which are the hub library's own business (``HF_TOKEN``, ``hf auth
login``) and are never read here.
"""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from skill2env.errors import Boundary, InfraError, UserError
from skill2env.publish.dataset import DatasetState, require_state
from skill2env.publish.integrity import check_tasks
from skill2env.store.files import TEMPORARY_PREFIX, copy_tree, move_into_place, staged_folder


def push(dataset: Path, repo: str, *, endpoint: str | None = None, private: bool = False) -> str:
    """Make a dataset repository equal to a dataset folder, in one commit.

    Args:
        dataset: the folder.
        repo: ``owner/name``; made when absent.
        endpoint: base URL of the hub; None for the library's default or ``HF_ENDPOINT``.
        private: visibility of a repository that is made now.

    Returns:
        URL of the commit.

    Raises:
        UserError: not a dataset, changed since it was published, the extra is missing, or the hub refuses.
        InfraError: boundary ``network``; the hub cannot be reached or fails.
    """
    state = require_state(dataset)
    check_tasks(dataset, state)
    hub: Any = _library()
    api = hub.HfApi(endpoint=endpoint)
    with _attributed(hub, f"pushing to {repo}"):
        api.create_repo(repo, repo_type="dataset", private=private, exist_ok=True)
        commit = api.upload_folder(
            repo_id=repo,
            repo_type="dataset",
            folder_path=dataset,
            commit_message=f"{state.name} {state.version}",
            ignore_patterns=[f"{TEMPORARY_PREFIX}*"],
            delete_patterns=["*"],  # of what is not uploaded now: a take-down here is a take-down there
        )
    return str(commit.commit_url)


def pull(
    repo: str, dataset: Path, *, endpoint: str | None = None, revision: str | None = None
) -> DatasetState:
    """Fetch a dataset repository into a new folder, which appears only when it is whole.

    Args:
        repo: ``owner/name``.
        dataset: the folder to make; must not exist or be empty.
        endpoint: as for `push`.
        revision: branch, tag or commit; None for the default branch.

    Raises:
        UserError: the folder is not empty, the extra is missing, there is no such repository, it is no dataset of ours,
            or a task differs from the digest that ``dataset.toml`` names.
        InfraError: boundary ``network`` or ``storage``.
    """
    if dataset.exists() and (not dataset.is_dir() or any(dataset.iterdir())):
        raise UserError(f"{dataset} exists and is not empty", hint="pull into a new folder")
    hub: Any = _library()
    with staged_folder(dataset.parent) as staged:
        download = staged / "download"
        with _attributed(hub, f"pulling {repo}"):
            hub.snapshot_download(
                repo, repo_type="dataset", revision=revision, local_dir=download, endpoint=endpoint
            )
        shutil.rmtree(download / ".cache", ignore_errors=True)
        (download / ".gitattributes").unlink(missing_ok=True)
        whole = staged / "dataset"
        copy_tree(download, whole)  # regular files only: what comes from elsewhere may hold links
        state = require_state(whole)
        check_tasks(whole, state)
        if dataset.exists():
            dataset.rmdir()
        move_into_place(whole, dataset)
    return state


def _library() -> Any:
    try:
        import huggingface_hub

        import_module("huggingface_hub.errors")  # the package loads its parts only when they are named
    except ImportError:
        raise UserError(
            "Hugging Face repositories need the extra 'huggingface'",
            hint="pip install 'skill2env[huggingface]'",
        ) from None
    return huggingface_hub


@contextmanager
def _attributed(hub: Any, doing: str) -> Generator[None]:
    """Tell a refusal (the user's to mend) from an unreachable or failing hub."""
    problems = hub.errors
    try:
        yield
    except problems.RepositoryNotFoundError as error:
        raise UserError(f"{doing} failed: there is no such repository, or the token may not see it",
                        hint="check the name; `hf auth login` or HF_TOKEN sets the token") from error  # fmt: skip
    except problems.RevisionNotFoundError as error:
        raise UserError(f"{doing} failed: there is no such revision") from error
    except problems.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", 0)
        if status in (400, 401, 403, 409):
            raise UserError(
                f"{doing} was refused ({status}): {error.server_message or error}",
                hint="`hf auth login` or HF_TOKEN sets the token; it needs write access to push",
            ) from error
        raise InfraError(Boundary.NETWORK, f"{doing} failed ({status})", hint="try again later") from error
    except ValueError as error:
        raise UserError(f"{doing} failed: {error}") from error
    except Exception as error:  # HTTP client errors, whose classes differ between the library's versions
        raise InfraError(
            Boundary.NETWORK, f"{doing} failed: {type(error).__name__}: {error}",
            hint="is the endpoint reachable? --endpoint or HF_ENDPOINT names another",
        ) from error  # fmt: skip
