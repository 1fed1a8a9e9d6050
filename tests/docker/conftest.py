"""These tests run containers of both images; `make test-docker` alone collects them."""

import os

collect_ignore_glob = [] if os.environ.get("CASTELL_DOCKER") else ["test_*.py"]
