"""`mportal template`: specifications with typed parameters, shared in a project or by all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from monarch_client.cli import completion
from monarch_client.cli.examples import examples
from monarch_client.cli.exit_codes import BAD_REQUEST
from monarch_client.cli.options import SPEC_FILE, project_option
from monarch_client.cli.output import Output, age, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.spec_text import excerpt, text_from
from monarch_client.cli.submit import job_options
from monarch_client.cli.tables import print_table
from monarch_client.cli.terminal import one_line, say, tell
from monarch_client.cli.verb_group import VerbGroup
from monarch_client.errors import InvalidSpecErrors
from monarch_client.spec.files import text_of_file

if TYPE_CHECKING:
    from monarch_client.wire.templates import Template, TemplateDetail


def _saved(template: Template) -> str:
    return f"{age(template.saved_at)} ago by {template.saved_by}" if template.saved_at else "-"


COLUMNS = {
    "NAME": lambda template: template.name,
    "TITLE": lambda template: template.title,
    "VERSION": lambda template: str(template.version),
    "SCOPE": lambda template: template.scope,
    "SAVED": _saved,
}
name_argument = click.argument("name", shell_complete=completion.templates)
version_option = click.option(
    "--version", "-V", "version", type=click.IntRange(1), help="Default: the newest."
)
all_option = click.option(
    "--all-projects", "for_all", is_flag=True, help="Of all projects; for administrators."
)


def _values(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """Parse NAME=VALUE; @FILE as the value is the content of a file."""
    values = {}
    for text in texts:
        name, is_given, value = text.partition("=")
        if not is_given:
            raise click.BadParameter(f"{text} is not NAME=VALUE, such as nodes=4.")
        if value.startswith("@"):
            try:
                value = text_of_file(Path(value[1:]))
            except OSError as error:
                raise click.BadParameter(f"{value[1:]}: {error.strerror}") from error
        values[name] = value
    return values


@click.group(cls=VerbGroup)
def template() -> None:
    """Save and run job templates."""


@template.command("list")
@project_option
@output_options
@pass_session
def template_list(session: Session, *, project: str | None, output: Output) -> None:
    """List the templates that the project can use."""
    output.rows(
        session.client.templates(session.project(project)),
        COLUMNS,
        key="name",
        empty="No templates. To save one: mportal template save FILE",
    )


@template.command("show")
@name_argument
@version_option
@click.option("--source", "is_source", is_flag=True, help="Print its text, to edit and save.")
@project_option
@output_options
@pass_session
def template_show(
    session: Session,
    *,
    name: str,
    version: int | None,
    is_source: bool,
    project: str | None,
    output: Output,
) -> None:
    """Show a template's parameters."""
    found = session.client.template(session.project(project), name, version)
    if is_source:
        say(found.source.rstrip("\n"))
    else:
        output.one(found, lambda: _show(found), key="name")


@template.command(
    "run",
    epilog=examples(
        "mportal template run finetune -P nodes=4 -F",
        "mportal template run finetune -P prompt=@prompt.txt --print",
    ),
)
@click.argument("template_name", metavar="NAME", shell_complete=completion.templates)
@click.option(
    "--param", "-P", "values", multiple=True, metavar="NAME=VALUE", callback=_values,
    help="Set a parameter; NAME=@FILE takes a file's content. Repeatable.",
)  # fmt: skip
@version_option
@click.option("--print", "is_print", is_flag=True, help="Print the specification; submit nothing.")
@click.option("--follow/--detach", "-F/-d", default=False, help="Follow the job to its end.")
@job_options
@pass_session
def template_run(
    session: Session,
    /,
    template_name: str,
    values: dict[str, str],
    version: int | None,
    **options: Any,
) -> None:
    """Submit a job from a template, with the defaults of parameters that are not set."""
    from monarch_client.cli.sending import submit_text  # noqa: PLC0415 - 300 ms

    slug = options["project"] = session.project(options["project"])
    text = session.client.fill_in_template(slug, template_name, values, version)
    if options.pop("is_print"):
        say(text.rstrip("\n"))
        return
    submit_text(session, text, template_name, **options)


@template.command("save")
@click.argument("file", type=SPEC_FILE)
@all_option
@project_option
@output_options
@pass_session
def template_save(
    session: Session, *, file: str, for_all: bool, project: str | None, output: Output
) -> None:
    """Save FILE as the next version of the template that its header names; - is standard input."""
    from monarch_client.spec.templates import JobTemplate  # noqa: PLC0415 - 50 ms

    text = text_from(file)
    slug = None if for_all else session.project(project)
    try:
        name = JobTemplate.parse(text).name
        saved = session.client.save_template(slug, name, text)
    except InvalidSpecErrors as error:
        for each in error.errors:
            tell(excerpt(text, each, file))
        click.get_current_context().exit(BAD_REQUEST)
    output.one(saved, lambda: say(f"{saved.name}: version {saved.version}"), key="name")


@template.command("rm")
@name_argument
@all_option
@project_option
@pass_session
def template_rm(session: Session, *, name: str, for_all: bool, project: str | None) -> None:
    """Delete a template with all its versions. Jobs that were made from it stay."""
    session.client.delete_template(None if for_all else session.project(project), name)
    say(f"{name}: removed")


def _show(found: TemplateDetail) -> None:
    say(f"{found.name}: {found.title}, version {found.version} ({found.scope})")
    if found.about:
        say(one_line(found.about))
    required = found.parameters.get("required", ())
    rows = [
        [
            name,
            _type(field),
            "(required)" if name in required else _default(field),
            field.get("description") or field.get("title", ""),
        ]
        for name, field in found.parameters["properties"].items()
    ]
    if rows:
        print_table(["PARAMETER", "TYPE", "DEFAULT", "ABOUT"], rows)


def _type(field: dict[str, Any]) -> str:
    if "enum" in field:
        return "|".join(field["enum"])
    low = field.get("minimum", field.get("minItems", ""))
    high = field.get("maximum", field.get("maxItems", ""))
    return f"{field['type']} {low}..{high}" if f"{low}{high}" else str(field["type"])


def _default(field: dict[str, Any]) -> str:
    value = field.get("default", "")
    if value in ("", []):
        return "(empty)"
    return ",".join(value) if isinstance(value, list) else _one(value)


def _one(value: Any) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value))
