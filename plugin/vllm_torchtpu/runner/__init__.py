"""The model runner: vLLM's V1 runner with its batch on the host and its graphs on the device."""
