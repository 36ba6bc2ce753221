"""Run the benchmark: `python -m benchmarks.instructions`."""

from benchmarks.instructions.benchmark import main

raise SystemExit(main())
