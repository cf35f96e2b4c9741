"""Fixtures that several folders of tests share."""

import os

# Tests that want torch_tpu load it themselves; `import torch` alone would bring it, and libtpu.
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

pytest_plugins = ["tests.models.fixtures"]
