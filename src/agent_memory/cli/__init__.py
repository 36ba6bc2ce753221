"""`agent-memory`, the command line: prints the answers of `MemoryService`.

One module per group of commands. Nothing heavy is imported before a command runs, so that `--help` and shell completion
answer at once; that is why imports are in functions here.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Final

_OBJECTS_BETWEEN_COLLECTIONS: Final = 1_000_000
"""What a command makes, it mostly keeps: with Python's 700, looking for cycles took a tenth of a `list` of 5,000."""
_STOPPED: Final = 130
_HOOK: Final = "agent_memory.integrations.mcp.session_hook:run_hook"


def main() -> None:
    """Run `agent-memory` with the arguments of this process.

    Raises:
        SystemExit: With 2 if the extra `cli` is not installed, else with the code of the command.
    """
    if threading.current_thread() is threading.main_thread():  # no other thread may set a handler
        signal.signal(signal.SIGINT, _stop)  # a running command has a handler of its own, which reports how far it came
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # the result is complete
    atexit.register(gc.freeze)  # looking for cycles at the end of the process takes a quarter of a `list`
    if sys.argv[1:] == ["--version"]:  # does not need what takes four times as long to import
        sys.stdout.write(f"agent-memory {sys.modules['agent_memory'].__version__}\n")
        return
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    if sys.argv[1:2] == ["hook"]:  # hosts wait for it, so it loads no command
        from agent_memory.registry import load_handler

        sys.exit(load_handler(_HOOK)(sys.argv[2:]))
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them takes 10 ms
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's threads take 60 ms to start, and one is enough
    try:
        import typer  # noqa: F401 - an extra: its absence has an answer
    except ImportError:
        from agent_memory.cli.permanent_program import restart_with_extras
        from agent_memory.settings.installation import advice

        if (code := restart_with_extras(sys.argv[1:])) is not None:
            sys.exit(code)
        sys.stderr.write(f"error: The command line needs typer and rich.\nhint: {advice('cli')}\n")
        sys.exit(2)
    from agent_memory.cli.app import build

    _open_missing_streams()
    try:
        build()(prog_name="agent-memory")
    finally:
        _flush_output()


def _stop(*_: object) -> None:
    """End the process at Ctrl-C, before or after a command."""
    with contextlib.suppress(OSError):
        os.write(2, b"Stopped.\n")
    os._exit(_STOPPED)


def _open_missing_streams() -> None:
    """Open the null device for closed standard streams, which are None."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open until the process ends


def _flush_output() -> None:
    """Write what is left of the output.

    Raises:
        SystemExit: It cannot be written; Python itself would end with 120 and a message of its own.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(
                f"error: The output cannot be written: {error.strerror}.\nhint: Free some space, or write elsewhere.\n"
            )
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - nothing more can be written
        sys.exit(1)
