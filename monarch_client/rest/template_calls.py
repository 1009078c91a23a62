"""The endpoints about templates. `project` None: the templates of all projects."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from monarch_client import wire
from monarch_client.rest.connection import Connection
from monarch_client.rest.decoding import decode, decode_page


class TemplateCalls:
    """A part of `PortalClient`."""

    connection: Connection

    def templates(self, project: str | None) -> list[wire.templates.Template]:
        """List the templates that the project can use, by name."""
        answer = self.connection.request("GET", _list(project))
        return decode_page(wire.templates.Template, answer).results

    def template(
        self, project: str | None, name: str, version: int | None = None
    ) -> wire.templates.TemplateDetail:
        """Return one template with its text and parameters; the newest version by default."""
        params = {} if version is None else {"version": version}
        answer = self.connection.request("GET", _template(project, name), params=params)
        return decode(wire.templates.TemplateDetail, answer)

    def save_template(
        self, project: str | None, name: str, source: str
    ) -> wire.templates.TemplateDetail:
        """Save the next version of a template. InvalidSpecErrors: what is wrong with it."""
        path, body = _template(project, name), {"source": source}
        answer = self.connection.request("PUT", path, repeatable=True, json=body)
        return decode(wire.templates.TemplateDetail, answer)

    def delete_template(self, project: str | None, name: str) -> None:
        """Delete all versions of a template. Jobs that were made from it stay."""
        self.connection.request("DELETE", _template(project, name))

    def fill_in_template(
        self,
        project: str,
        name: str,
        values: Mapping[str, Any],
        version: int | None = None,
    ) -> str:
        """Return the specification that the values make. InvalidSpecErrors: which do not fit."""
        path = f"{_template(project, name)}/actions/fill-in"
        body = {"values": dict(values), "version": version}
        answer = self.connection.request("POST", path, repeatable=True, json=body)
        return decode(wire.templates.FilledTemplate, answer).spec

    def run_template(
        self,
        project: str,
        name: str,
        values: Mapping[str, Any],
        version: int | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> list[wire.jobs.Job]:
        """Submit the jobs that a template and values make."""
        path = f"{_template(project, name)}/actions/run"
        headers = {"Idempotency-Key": idempotency_key or uuid.uuid4().hex}
        body = {"values": dict(values), "version": version}
        answer = self.connection.request("POST", path, repeatable=True, json=body, headers=headers)
        return decode_page(wire.jobs.Job, answer).results


def _list(project: str | None) -> str:
    return "/templates" if project is None else f"/projects/{project}/templates"


def _template(project: str | None, name: str) -> str:
    return f"{_list(project)}/{quote(name, safe='')}"
