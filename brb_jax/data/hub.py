"""Files of Hugging Face Hub repositories: `hf://datasets/owner/name` and `hf://owner/name`.

Listed first, so that only what is wanted is downloaded. With `HF_HUB_OFFLINE` both come from the cache.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import glob
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SCHEME = "hf://"
_FORM = "hf://datasets/owner/name or hf://owner/name, optionally with @revision and /path"

_FETCH_FIRST = "run once with the same --data and filters, and without HF_HUB_OFFLINE"


class HubError(ValueError):
    """Files that cannot be had from the Hub.

    Attributes:
        problem: What is wrong.
        remedy: What to do about it.
    """

    def __init__(self, problem: str, remedy: str):
        self.problem, self.remedy = problem, remedy
        super().__init__(f"{problem}; {remedy}")


@dataclasses.dataclass(frozen=True)
class Repository:
    """A dataset or model repository at one revision; None is its default branch."""

    kind: str
    id: str
    revision: str | None

    def address(self, revision: str | None) -> str:
        """The `hf://` address at a revision."""
        folder = "datasets/" if self.kind == "dataset" else ""
        return f"{SCHEME}{folder}{self.id}" + (f"@{revision}" if revision else "")


def find_files(uri: str) -> tuple[Repository, list[str]]:
    """The files that an address means: all of a repository, those in a folder or under a glob, or just one.

    Args:
        uri: `hf://[datasets/]owner/name[@revision][/path]`; in the path `*`, `?`, `[…]` match within a folder's or
            file's name, and `**` any number of folders.

    Returns:
        The repository, and paths in it.

    Raises:
        HubError: No such address, repository or revision; no access; no network, and nothing cached.
    """
    # Imported here because it takes a moment, and local files do not need it.
    import huggingface_hub
    from huggingface_hub import errors

    try:
        parsed = huggingface_hub.parse_hf_uri(uri)
    except ValueError as error:
        raise HubError(f"is no address on the Hub: {_line(error)}", f"write it as {_FORM}") from error
    if parsed.type not in ("dataset", "model"):
        raise HubError(f"is a {parsed.type}; only datasets and models can be read", f"write it as {_FORM}")
    repository = Repository(parsed.type, parsed.id, parsed.revision)
    where: dict[str, Any] = {"repo_type": repository.kind, "revision": repository.revision}
    try:
        if huggingface_hub.is_offline_mode():
            paths = [file.path for file in huggingface_hub.get_cached_repo_tree(repository.id, **where)]
        else:
            api = huggingface_hub.HfApi()
            # Fails at once, where the listing would try for half a minute.
            api.repo_info(repository.id, **where)
            paths = api.list_repo_files(repository.id, **where)
    except (errors.HTTPError, errors.CachedRepoTreeNotFoundError, OSError) as error:
        raise _told(error, repository) from error
    wanted = tuple(part for part in parsed.path_in_repo.split("/") if part)
    return repository, sorted(path for path in paths if _lies_under(tuple(path.split("/")), wanted))


def download(repository: Repository, paths: Sequence[str]) -> tuple[Path, str]:
    """Fetches files, or finds them in the cache.

    Returns:
        The folder they are in, and the commit they are of.

    Raises:
        HubError: As for `find_files`; or a file is gone.
    """
    import huggingface_hub
    from huggingface_hub import errors

    if not sys.stderr.isatty():
        huggingface_hub.utils.disable_progress_bars()
    try:
        folder = Path(
            huggingface_hub.snapshot_download(
                repository.id,
                repo_type=repository.kind,
                revision=repository.revision,
                allow_patterns=[glob.escape(path) for path in paths],
            )
        )
    except errors.IncompleteSnapshotError as error:
        folder = Path(error.snapshot_path)
    except (errors.HTTPError, OSError) as error:
        raise _told(error, repository) from error
    missing = [path for path in paths if not (folder / path).is_file()]
    if missing and huggingface_hub.is_offline_mode():
        problem = f"cannot be read offline: {len(missing)} of {len(paths)} files are not in the cache ({missing[0]}, …)"
        raise HubError(problem, _FETCH_FIRST)
    if missing:
        raise HubError(f"{missing[0]} could not be fetched", "start again")
    return folder, folder.name


def _lies_under(path: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether the pattern means the file, or a folder it is in."""
    return any(_matches(path[:depth], pattern) for depth in range(len(path) + 1))


def _matches(path: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_matches(path[skipped:], pattern[1:]) for skipped in range(len(path) + 1))
    return bool(path) and fnmatch.fnmatchcase(path[0], pattern[0]) and _matches(path[1:], pattern[1:])


def _told(error: Exception, repository: Repository) -> HubError:
    """What `huggingface_hub` raised, in one line."""
    import huggingface_hub
    from huggingface_hub import errors

    log_in = "log in with `hf auth login`, or set HF_TOKEN"
    if isinstance(error, errors.GatedRepoError):
        return HubError("is gated, and access has not been granted", f"ask for it on its page, and {log_in}")
    if isinstance(error, errors.RepositoryNotFoundError):
        return HubError(
            f"there is no such {repository.kind} repository on the Hub, or it is private",
            f"check the name ({_FORM}); if it is private, {log_in}",
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return HubError(f"the repository has no revision {repository.revision!r}", "name another after the @")
    offline = huggingface_hub.is_offline_mode()
    if offline and isinstance(error, errors.CachedRepoTreeNotFoundError | errors.LocalEntryNotFoundError):
        return HubError("cannot be read offline: the repository, at this revision, is not in the cache", _FETCH_FIRST)
    return HubError(
        f"the Hub cannot be reached, or gave no answer: {_line(error)}",
        "try again; with HF_HUB_OFFLINE=1, what an earlier run fetched is read from the cache",
    )


def _line(error: BaseException) -> str:
    """The first line of a message, without its full stop."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(". ")
