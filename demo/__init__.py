"""A real language model, served by vLLM through the plugin, in one command: ``python -m demo``."""
