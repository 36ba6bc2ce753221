"""Run the benchmark: `python -m benchmarks.retrieval`."""

from benchmarks.retrieval.benchmark import main

raise SystemExit(main())
