"""Run the benchmark: `python -m benchmarks.reword`."""

from benchmarks.reword.benchmark import main

raise SystemExit(main())
