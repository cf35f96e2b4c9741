"""The command line: options and help here, the work in `tpu_matrix.commands`.

Each verb imports its module when it is called, so that `list` does not wait for what
only `record` needs.
"""

from __future__ import annotations

import datetime as dt
import enum
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from tpu_matrix.errors import MatrixError

app = typer.Typer(
    name="tpu-matrix",
    help="Claims, evidence and statuses of what runs on which TPU.",
    epilog="Example: tpu-matrix status smollm2-135m-instruct",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

MatrixOption = Annotated[
    Path | None,
    typer.Option(
        "--matrix",
        metavar="DIR",
        help="The claims; by default the nearest support_matrix/ here or above.",
    ),
]
EvidenceOption = Annotated[
    Path | None,
    typer.Option(
        "--evidence",
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="The evidence; by default evidence/ beside the claims.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for a program.")]
RowArgument = Annotated[str, typer.Argument(metavar="ROW", help="A row's id, short or stable.")]


class RequiredKind(enum.StrEnum):
    """A column of evidence, as an option value."""

    HARDWARE = "hardware"
    COMPILES = "compiles"
    VIRTUAL = "virtual"


@app.command(epilog="Example: tpu-matrix lint")
def lint(matrix: MatrixOption = None, json: JsonOption = False) -> None:
    """Report every mistake in the claims, all at once."""
    from tpu_matrix.commands import lint as command
    from tpu_matrix.commands.workspace import Workspace

    raise typer.Exit(command.run(Workspace(matrix), json))


@app.command("list", epilog="Example: tpu-matrix list --json")
def list_(matrix: MatrixOption = None, json: JsonOption = False) -> None:
    """List the rows that are claimed."""
    from tpu_matrix.commands import list as command
    from tpu_matrix.commands.workspace import Workspace

    raise typer.Exit(command.run(Workspace(matrix), json))


@app.command(epilog="Example: tpu-matrix show smollm2-135m-instruct")
def show(row: RowArgument, matrix: MatrixOption = None, json: JsonOption = False) -> None:
    """Show one row and the exact command that it claims."""
    from tpu_matrix.commands import show as command
    from tpu_matrix.commands.workspace import Workspace

    raise typer.Exit(command.run(Workspace(matrix), row, json))


@app.command(epilog="Example: tpu-matrix record run.json")
def record(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="One record as JSON; stdin without it."),
    ] = None,
    matrix: MatrixOption = None,
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="Where to add it; by default evidence/ beside the claims.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Add one run to the evidence, or say every reason why it proves nothing."""
    from tpu_matrix.commands import record as command
    from tpu_matrix.commands.workspace import Workspace

    raise typer.Exit(command.run(Workspace(matrix, evidence), file, json))


@app.command(epilog="Example: tpu-matrix status smollm2-135m-instruct --require virtual")
def status(
    row: Annotated[
        str | None, typer.Argument(metavar="ROW", help="One row; all rows without it.")
    ] = None,
    matrix: MatrixOption = None,
    evidence: EvidenceOption = None,
    now: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Another time than now, as ISO 8601 with its zone."),
    ] = None,
    require: Annotated[
        RequiredKind | None,
        typer.Option(help="Exit with 1 unless every row shown has a pass of this kind."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show what the evidence says about the rows."""
    from tpu_matrix.commands import status as command
    from tpu_matrix.commands.workspace import Workspace

    kind = None if require is None else require.value
    workspace = Workspace(matrix, evidence)
    raise typer.Exit(command.run(workspace, row, _moment(now), kind, json))


@app.command(epilog="Example: tpu-matrix render --check")
def render(
    matrix: MatrixOption = None,
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="Evidence to add to the committed snapshot; none by default.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", file_okay=False, help="Where to write; by default docs/support-matrix/."
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail on drift.")] = False,
) -> None:
    """Render the Markdown pages from the claims and the evidence."""
    from tpu_matrix.commands import generate
    from tpu_matrix.commands.workspace import Workspace

    raise typer.Exit(generate.render(Workspace(matrix, evidence), output, check))


@app.command(epilog="Example: tpu-matrix schema --check")
def schema(
    matrix: MatrixOption = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail on drift.")] = False,
) -> None:
    """Write the JSON Schemas that editors read beside the claims."""
    from tpu_matrix.commands import generate
    from tpu_matrix.commands.workspace import Workspace

    raise typer.Exit(generate.schema(Workspace(matrix), check))


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line; a user's mistake ends in one sentence and an exit code.

    Args:
        arguments: what follows the program's name; by default those of the process.
    """
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal cannot spell is shown escaped instead of ending the command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(arguments, prog_name="tpu-matrix")
    except MatrixError as error:
        print(f"tpu-matrix: {error}", file=sys.stderr)
        sys.exit(int(error.exit_code))
    sys.exit(0)


def _moment(text: str | None) -> dt.datetime:
    if text is None:
        return dt.datetime.now(dt.UTC)
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        found = f"{text!r} is not a time with a zone"
        raise MatrixError("--now", found, "write it as 2026-11-30T12:00:00Z")
    return moment


if __name__ == "__main__":
    main()
