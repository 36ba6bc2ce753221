"""Run the benchmark: `python -m benchmarks.entities`."""

from benchmarks.entities.benchmark import main

raise SystemExit(main())
