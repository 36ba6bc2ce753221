"""Run the benchmark: `python -m benchmarks.forgetting`."""

from benchmarks.forgetting.benchmark import main

raise SystemExit(main())
