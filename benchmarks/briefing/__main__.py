"""Run the benchmark: `python -m benchmarks.briefing`."""

import sys

from benchmarks.briefing.benchmark import main

sys.exit(main())
