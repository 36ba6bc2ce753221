"""Run the benchmark: `python -m benchmarks.workspace`."""

import sys

from benchmarks.workspace.benchmark import main

sys.exit(main())
