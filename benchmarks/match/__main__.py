"""Run the benchmark: `python -m benchmarks.match`."""

from benchmarks.match.benchmark import main

raise SystemExit(main())
