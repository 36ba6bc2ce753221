"""Run the benchmark: `python -m benchmarks.harm`."""

from benchmarks.harm.benchmark import main

raise SystemExit(main())
