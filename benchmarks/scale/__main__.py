"""Run the benchmark: `python -m benchmarks.scale`."""

from benchmarks.scale.benchmark import main

raise SystemExit(main())
