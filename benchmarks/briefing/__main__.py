"""Run the benchmark: `python -m benchmarks.briefing`."""

from benchmarks.briefing.benchmark import main

raise SystemExit(main())
