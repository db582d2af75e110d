"""Configs of the Hugging Face hub, and of local folders.  Nothing but a config is ever fetched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from vramscope.errors import SourceError
from vramscope.jobs.source import DIFFUSERS, Source
from vramscope.jobs.sources.paper import first_line, library

_PATIENCE_S = 5.0
"""For the hub's first answer."""


def folder_of(source: Source, *files: str) -> Path | None:
    """The local folder that a source names, which holds one of the files; None: it names a repository."""
    folder = source.folder
    if folder is None:
        if source.name.startswith((".", "~", os.sep)):
            raise SourceError(f"{source.text}: there is no folder {source.name}")
        return None
    if not any((folder / file).is_file() for file in files):
        raise SourceError(
            f"{source.text}: the folder {source.name} has no {' or '.join(files)}; give the folder that"
            " save_pretrained() wrote (its config is enough), or a repository of the hub"
        )
    return folder


def had(source: Source, file: str, hint: str = "") -> Path:
    """A repository's file, from the cache or the hub; SourceError says why it cannot be had."""
    if found := kept(source, file, hint):
        return found
    hub = library("huggingface_hub", source)
    _check_reachable(hub, source, file, hint)
    try:
        return Path(hub.hf_hub_download(source.name, file, etag_timeout=_PATIENCE_S))
    except Exception as error:
        raise SourceError(f"{source.text}: {_why(source, file, error)}{hint}") from error


def kept(source: Source, file: str, hint: str = "") -> Path | None:
    """A repository's file in the cache; SourceError for a name that no repository can have."""
    hub = library("huggingface_hub", source)
    try:
        hub.utils.validate_repo_id(source.name)
    except ValueError as error:
        raise SourceError(f"{source.text} is no folder and no name of a repository{hint}") from error
    found = hub.try_to_load_from_cache(source.name, file)
    return Path(found) if isinstance(found, str) else None


def _check_reachable(hub: Any, source: Source, file: str, hint: str) -> None:
    """One quick question first: the hub's own client tries for half a minute."""
    if hub.constants.HF_HUB_OFFLINE:
        raise _unreachable(source, "HF_HUB_OFFLINE is set and it is not in the cache", hint)
    try:
        hub.get_session().head(hub.hf_hub_url(source.name, file), timeout=_PATIENCE_S)
    except Exception as error:
        raise _unreachable(source, f"the hub cannot be reached ({first_line(error)})", hint) from error


def _unreachable(source: Source, why: str, hint: str) -> SourceError:
    typed = "CLASS?key=value" if source.library == DIFFUSERS else "TYPE?hidden_size=4096&…"
    return SourceError(
        f"{source.text}: {why}; give a local folder with its config.json,"
        f" or type the config by hand: {source.library}/{typed}{hint}"
    )


def _why(source: Source, file: str, error: Exception) -> str:
    """The hub's refusals in a sentence."""
    kinds = [each.__name__ for each in type(error).__mro__]
    if "GatedRepoError" in kinds:
        return (
            f"the repository is gated: accept its terms at huggingface.co/{source.name}, then `hf auth login`"
        )
    if "RepositoryNotFoundError" in kinds:
        return "the hub has no such repository, or it is private: `hf auth login` if it is yours"
    if "LocalEntryNotFoundError" in kinds:
        return "the hub stopped answering; try again, or give a local folder with its config.json"
    if "EntryNotFoundError" in kinds:
        return f"the repository has no {file}"
    return f"its config cannot be fetched: {first_line(error)}"
