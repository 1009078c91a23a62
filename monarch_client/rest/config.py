"""Address, token and project: the environment first, then ~/.config/mportal/config.toml."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from monarch_client import rest
from monarch_client.errors import ClientError, NotSignedInError


class BadConfigError(ClientError):
    """The configuration file cannot be read."""

    code = "bad_config"


class NoProjectError(ClientError):
    """The error that no project was named."""

    code = "no_project"


@dataclass(frozen=True)
class Config:
    """The settings of commands. Empty means: not set."""

    url: str = ""
    token: str = ""
    project: str = ""


def config_path() -> Path:
    """Return the path of the file that `mportal login` writes."""
    import platformdirs  # noqa: PLC0415 - 15 ms, which help does without

    return platformdirs.user_config_path("mportal") / "config.toml"


def load(environ: Mapping[str, str]) -> Config:
    """Load the file's values, each overridden by MPORTAL_URL, MPORTAL_TOKEN, MPORTAL_PROJECT.

    A URL from the environment takes the file's token only when the file is about that portal.
    """
    config = _from_file(config_path())
    url = environ.get("MPORTAL_URL", "").strip().rstrip("/")
    if url and url != config.url:
        config = Config(url=url)
    return replace(
        config,
        token=environ.get("MPORTAL_TOKEN", "").strip() or config.token,
        project=environ.get("MPORTAL_PROJECT", "").strip() or config.project,
    )


def signed_in(config: Config, **options: Any) -> rest.PortalClient:
    """Return a client of the portal that the user is signed in to. NotSignedInError: of none."""
    if not config.url or not config.token:
        raise NotSignedInError(
            "Not signed in. Run `mportal login`, or set MPORTAL_URL and MPORTAL_TOKEN."
        )
    return rest.PortalClient(config.url, config.token, **options)


def project_of(client: rest.PortalClient, chosen: str | None) -> str:
    """Return the chosen project, or the user's only one. NoProjectError: there are several."""
    if chosen:
        return chosen
    slugs = [project.slug for project in client.projects()]
    if len(slugs) == 1:
        return slugs[0]
    raise NoProjectError(
        "Which project? Give --project or set MPORTAL_PROJECT; "
        + (f"yours are {', '.join(slugs)}." if slugs else "you belong to none yet.")
    )


def save(config: Config) -> Path:
    """Write the file, readable by its owner alone, and say where it is."""
    path = config_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # TOML's basic strings take JSON's escapes.
    rows = [f"{name} = {json.dumps(value)}\n" for name, value in vars(config).items() if value]
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(rows)
    new.replace(path)
    return path


def _from_file(path: Path) -> Config:
    try:
        values = _toml(path.read_text("utf-8"))
    except FileNotFoundError:
        return Config()
    except (OSError, ValueError) as error:
        raise BadConfigError(f"{path} cannot be read: {error}. Run `mportal login`.") from error
    known = {name: str(values[name]) for name in ("url", "token", "project") if name in values}
    return Config(**known)


def _toml(text: str) -> dict[str, Any]:
    """Parse TOML. The parser is imported here: help does without."""
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415
    else:
        import tomli as tomllib  # noqa: PLC0415
    return tomllib.loads(text)
