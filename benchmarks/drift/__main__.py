"""Run the benchmark: `python -m benchmarks.drift`."""

from benchmarks.drift.benchmark import main

raise SystemExit(main())
