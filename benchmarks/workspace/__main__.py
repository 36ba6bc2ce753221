"""Run the benchmark: `python -m benchmarks.workspace`."""

from benchmarks.workspace.benchmark import main

raise SystemExit(main())
