"""Run the benchmark: `python -m benchmarks.changed`."""

from benchmarks.changed.benchmark import main

raise SystemExit(main())
