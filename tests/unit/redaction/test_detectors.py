"""The seam to detect-secrets: nothing that verifies is read, and whoever wants it gets it all the same."""

from __future__ import annotations

import subprocess
import sys

from tests.concurrency.processes import environment

PROGRAM = """
import sys
from agent_memory.redaction import SecretRedactor

text = "my key is " + "AKIA" + "QX7ZP3LM9TNV2RWD"
assert "[redacted:" in SecretRedactor().redact(text).text
assert {"requests", "urllib3"}.isdisjoint(sys.modules), sorted(sys.modules)

from detect_secrets.plugins import stripe

import requests

assert requests.get is stripe.requests.get
assert isinstance(requests.RequestException(), OSError)
"""


def test_the_detectors_read_no_client_of_the_network_until_somebody_uses_one() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
