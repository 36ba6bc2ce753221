"""Run the benchmark: `python -m benchmarks.conflicts`."""

from benchmarks.conflicts.benchmark import main

raise SystemExit(main())
