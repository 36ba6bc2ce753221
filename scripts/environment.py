"""Makes a virtual environment and keeps it whole: `python scripts/environment.py FOLDER KIND`.

KIND is `demo`, `book`, `dev`, `docs`, or `lowest`: as `dev`, but with the lowest versions that are declared for users.
Run by `make` with the machine's own Python, so it needs nothing but the standard library. An environment counts as made
only when a marker, written last, says with what; one whose making was interrupted is begun anew.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

REPOSITORY: Final = Path(__file__).resolve().parents[1]
_USERS: Final = "local,languages,openai,cli,server,vector,workspace"
EXTRAS: Final = {
    "demo": "local",
    "book": "cli,workspace",
    "dev": f"dev,{_USERS}",
    "lowest": f"dev,{_USERS}",
    "docs": "docs",
}
MODULES_OF: Final = {
    "demo": ("tool-memory-semantic", "context-memory-scratchpad", "hooks-memory-capture"),
    "book": ("tool-memory-workspace", "context-memory-scratchpad"),
}
"""Of environments that do not have them all."""
OLDEST: Final = (3, 11)
LOCK: Final = REPOSITORY / "requirements" / "dev.txt"
"""Exact versions with hashes of what kind `dev` installs, written by `make lock`."""
NEWEST_LOCKED: Final = (3, 13)
"""Later Pythons get what `pyproject.toml` declares."""
_REQUIREMENT: Final = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])?(?:>=|==)(\d+(?:\.\d+)*)")
_MARKER: Final = ".made"
_BEGUN: Final = ".begun"
_SHOWN_AFTER_FAILURE: Final = 60


class EnvironmentFailedError(Exception):
    """Why there is no environment, for people."""


def main(arguments: Sequence[str]) -> int:
    """Make what the command line asks for; return the exit status."""
    if len(arguments) != 2 or arguments[1] not in EXTRAS:  # noqa: PLR2004 - a folder and a kind
        print(__doc__, file=sys.stderr)
        return 2
    if sys.version_info < OLDEST:
        print(f"agent-memory needs Python 3.11 or newer; this is {sys.version.split()[0]}.", file=sys.stderr)
        return 1
    try:
        make(Path(arguments[0]), arguments[1])
    except EnvironmentFailedError as failure:
        print(f"{failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The same command begins the environment anew.", file=sys.stderr)
        return 130
    return 0


def make(folder: Path, kind: str) -> None:
    """Make `folder` an environment of that kind; at once if it is one already.

    Raises:
        EnvironmentFailedError: It could not be made; the folder is begun anew the next time.
    """
    state = fingerprint(kind)
    if is_made(folder, state):
        return
    started = time.monotonic()
    print(f"Making {folder} with Python {sys.version.split()[0]}, once.", flush=True)
    _prepare(folder)
    print("  downloading and installing:", flush=True)
    _install(folder, kind)
    (folder / _MARKER).write_text(state, encoding="utf-8")
    (folder / _BEGUN).unlink(missing_ok=True)
    print(f"  done in {time.monotonic() - started:.0f} s", flush=True)


def is_made(folder: Path, state: str) -> bool:
    """Tell whether `folder` was made to the end for this `state` and its Python still runs."""
    try:
        return (folder / _MARKER).read_text(encoding="utf-8") == state and _runs(folder, "-c", "")
    except OSError:
        return False


def fingerprint(kind: str) -> str:
    """Return what an environment of that kind is made of."""
    content = b"".join((folder / "pyproject.toml").read_bytes() for folder in (REPOSITORY, *packages(kind)))
    content += LOCK.read_bytes() if is_locked(kind) else b""
    return f"{kind} {EXTRAS[kind]} {hashlib.sha256(content).hexdigest()}\n"


def is_locked(kind: str) -> bool:
    """Return True if exact versions with hashes are installed."""
    return kind == "dev" and sys.version_info[:2] <= NEWEST_LOCKED


def packages(kind: str) -> list[Path]:
    """Return the folders of this repository that are installed beside the library: modules, and the demo."""
    if kind == "docs":
        return []
    modules = sorted(path.parent for path in REPOSITORY.glob("modules/*/pyproject.toml"))
    wanted = MODULES_OF.get(kind)
    return [*(path for path in modules if wanted is None or path.name in wanted), REPOSITORY / "demo"]


def lowest_versions(folders: Sequence[Path]) -> list[str]:
    """Return as pip's constraints the lowest versions that these projects declare for what users install.

    Tools of developers (the extra `dev`) are left out: nobody but this repository installs them.

    Raises:
        EnvironmentFailedError: A requirement has no lower bound, or two projects declare different ones.
    """
    import tomllib  # not above: a Python that has none is to be refused in a sentence

    found: dict[str, str] = {}
    for folder in folders:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        extras = project.get("optional-dependencies", {})
        wanted = [
            *project.get("dependencies", ()),
            *(each for name in _USERS.split(",") for each in extras.get(name, ())),
        ]
        for requirement in wanted:
            if not (parts := _REQUIREMENT.match(requirement)):
                raise EnvironmentFailedError(
                    f"{folder.name}: {requirement} has no lower bound. Declare one with >= or ==."
                )
            name, version = parts[1].lower(), parts[2]
            if found.setdefault(name, version) != version:
                raise EnvironmentFailedError(f"{folder.name}: {name} from {version}, elsewhere from {found[name]}.")
    return sorted(f"{name}=={version}" for name, version in found.items())


def _prepare(folder: Path) -> None:
    """Leave an environment in which pip runs, marked as begun unless it is somebody else's, which is only added to."""
    if (folder / _BEGUN).exists():
        shutil.rmtree(folder)
    if ours := not folder.exists() or (folder / _MARKER).exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _BEGUN).touch()
        (folder / _MARKER).unlink(missing_ok=True)
    if _runs(folder, "-m", "pip", "--version"):
        return
    if not ours and not (folder / "pyvenv.cfg").exists() and any(folder.iterdir()):
        raise EnvironmentFailedError(f"{folder} is there and is no environment. Name another one: make VENV=FOLDER")
    clear = ["--clear"] if (folder / "pyvenv.cfg").exists() else []
    done = subprocess.run([sys.executable, "-m", "venv", *clear, str(folder)], check=False)  # noqa: S603
    if done.returncode:
        raise EnvironmentFailedError(
            f"{sys.executable} cannot make an environment. On Debian and Ubuntu: apt install python3-venv"
        )
    (folder / _BEGUN).touch()  # now it is ours; clearing removed the note


def _install(folder: Path, kind: str) -> None:
    """Install the requirements of that kind."""
    editable = [f"{REPOSITORY}[{EXTRAS[kind]}]", *map(str, packages(kind))]
    command = [word for path in editable for word in ("-e", path)]
    if is_locked(kind):
        _run_pip(folder, ["--require-hashes", "--requirement", str(LOCK)])
        command += ["--no-deps", "--no-build-isolation"]  # the lock has all of them, and what builds them
    elif kind == "lowest":
        constraints = folder / "lowest.txt"
        constraints.write_text("\n".join(lowest_versions([REPOSITORY, *packages(kind)])) + "\n", encoding="utf-8")
        command += ["--constraint", str(constraints)]
    _run_pip(folder, command)


def _run_pip(folder: Path, arguments: Sequence[str]) -> None:
    """Install with pip, and print which large packages are downloaded.

    Raises:
        EnvironmentFailedError: pip failed; its last lines are on the standard error.
    """
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
    command += ["--progress-bar", "off", *arguments]
    last: deque[str] = deque(maxlen=_SHOWN_AFTER_FAILURE)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:  # noqa: S603
        assert pip.stdout is not None
        for line in pip.stdout:
            last.append(line)
            if shown := worth_showing(line):
                print(f"    {shown}", flush=True)
    if pip.returncode:
        print("".join(last), file=sys.stderr)
        raise EnvironmentFailedError(
            f"pip could not install everything (exit status {pip.returncode}); see above, then do it again."
        )


def worth_showing(line: str) -> str | None:
    """Return what a line of pip's means to a person who waits: what is large, and how much it is; None when nothing."""
    words = line.split()
    if words[:1] == ["Downloading"] and words[-1] in {"MB)", "GB)"}:
        return " ".join([words[1].rpartition("/")[2].split("-cp")[0].split("-py3")[0].split("-py2")[0], *words[2:]])
    if line.startswith("Installing collected packages: "):
        return f"unpacking {line.count(',') + 1} packages"
    return None


def _runs(folder: Path, *arguments: str) -> bool:
    try:
        command = [str(folder / "bin" / "python"), *arguments]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
