"""The commands of `agent-memory` and their names. Registers; does nothing itself."""

from typing import Annotated, Final

import typer

from agent_memory.cli import doctor, editing, moving, reading, server, transfer, writing
from agent_memory.cli.running import runnable

_DISTRIBUTION: Final = "amplifier-bundle-agent-memory"
_HELP: Final = "Look after what an agent remembers: ask, correct, forget, take along."
_EPILOG: Final = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 another process is writing."


def build() -> typer.Typer:
    """Return the application."""
    app = typer.Typer(
        name="agent-memory",
        help=_HELP,
        epilog=_EPILOG,
        no_args_is_help=True,
        pretty_exceptions_enable=False,  # they print local variables: what a memory says
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name, body in (
        ("status", reading.status),
        ("search", reading.search),
        ("list", reading.list_recent),
        ("show", reading.show),
    ):
        app.command(name)(runnable(body))
    app.command("store")(runnable(writing.store, may_be_new=True))
    for name, change in (
        ("edit", editing.edit),
        ("promote", writing.promote),
        ("pin", writing.pin),
        ("unpin", writing.unpin),
        ("forget", writing.forget),
        ("export", transfer.export),
    ):
        app.command(name)(runnable(change))
    app.command("import")(runnable(transfer.import_, may_be_new=True))
    app.command("push")(runnable(server.push))
    app.command("pull")(runnable(server.pull, may_be_new=True))
    for name, move in (
        ("compact", writing.compact),
        ("migrate", moving.migrate),
        ("rollback", moving.rollback),
        ("reindex", moving.reindex),
    ):
        app.command(name)(runnable(move))
    app.command("doctor")(doctor.doctor)
    return app


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer's callback
    if wanted:
        from importlib import metadata  # noqa: PLC0415 - rarely needed

        try:
            version = metadata.version(_DISTRIBUTION)
        except metadata.PackageNotFoundError:
            version = "(not installed)"
        typer.echo(f"agent-memory {version}")
        raise typer.Exit


def _options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", help="Print the version and stop.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Nothing to do: --version has its own callback."""
