"""Tables of rows that one test goes through: every failing row is reported, with its name."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Test = Callable[..., Any]

_FAILURES = (Exception, pytest.fail.Exception)


def check_rows(
    names: str | Sequence[str], rows: Iterable[Any], ids: Callable[[Any], str] | Iterable[str] | None = None
) -> Callable[[Test], Test]:
    """Run a test on each row, as one test that fails with all failures.

    For rows that share no state: fixtures of the test are made once. Otherwise use `pytest.mark.parametrize`, which
    takes the same arguments.
    """
    argument_names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = list(_name_rows(argument_names, rows, ids))

    def decorate(test: Test) -> Test:
        if inspect.iscoroutinefunction(test):

            @functools.wraps(test)
            async def run_rows(*args: Any, **fixtures: Any) -> None:
                failures: list[BaseException] = []
                for name, arguments in table:
                    try:
                        await test(*args, **fixtures, **arguments)
                    except _FAILURES as failure:
                        _note_failure(failures, failure, name)
                _report_failures(failures, len(table))
        else:

            @functools.wraps(test)
            def run_rows(*args: Any, **fixtures: Any) -> None:
                failures: list[BaseException] = []
                for name, arguments in table:
                    try:
                        test(*args, **fixtures, **arguments)
                    except _FAILURES as failure:
                        _note_failure(failures, failure, name)
                _report_failures(failures, len(table))

        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in argument_names]
        assert len(signature.parameters) - len(kept) == len(argument_names), f"{test.__name__} does not take {names}"
        run_rows.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run_rows

    return decorate


def _name_rows(
    names: list[str], rows: Iterable[Any], ids: Callable[[Any], str] | Iterable[str] | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    labels = None if ids is None or callable(ids) else list(ids)
    for number, row in enumerate(rows):
        is_parameter_set = hasattr(row, "values") and hasattr(row, "marks")
        values = row.values if is_parameter_set else (row,) if len(names) == 1 else row
        if is_parameter_set and row.id:
            name = row.id
        elif labels is not None:
            name = labels[number]
        elif callable(ids):
            name = ids(values[0])
        else:
            name = ", ".join(map(_describe_value, values))
        yield f"row {number}: {name}", dict(zip(names, values, strict=True))


def _describe_value(value: Any) -> str:
    code = getattr(value, "__code__", None)
    return f"{value.__name__} in line {code.co_firstlineno}" if code else repr(value)[:200]


def _note_failure(failures: list[BaseException], failure: BaseException, name: str) -> None:
    failure.add_note(name)
    failures.append(failure)


def _report_failures(failures: list[BaseException], number: int) -> None:
    if failures:
        names = "; ".join(failure.__notes__[-1] for failure in failures)
        raise BaseExceptionGroup(f"{len(failures)} of {number} rows fail: {names}", failures)
