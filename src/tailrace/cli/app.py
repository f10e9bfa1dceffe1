"""The ``tailrace`` command: one module per verb, put together here.

Each module of this room owns one verb: its options, its words on the terminal and
its exit status. Errors of the package end in one line on standard error; only
``errors_in_one_line`` knows how.
"""

from __future__ import annotations

import typer

from tailrace.cli import dev, token
from tailrace.cli.demo import demo
from tailrace.cli.doctor import doctor
from tailrace.cli.explain import explain
from tailrace.cli.maintain import maintain
from tailrace.cli.replay import replay
from tailrace.cli.sync import sync
from tailrace.cli.verify import verify
from tailrace.cli.watch import watch

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def tailrace() -> None:
    """A database's log as an ordered, resumable stream of change events."""


app.command()(demo)
app.command()(explain)
app.command()(replay)
app.command()(watch)
app.command()(sync)
app.command()(verify)
app.command()(maintain)
app.command()(doctor)
app.add_typer(dev.app, name="dev")
app.add_typer(token.app, name="token")


def main() -> None:
    """The entry point of the ``tailrace`` command."""
    app()
