"""Out-of-tree vLLM platform plugin for TPUs, with a virtual TPU for hosts without one."""
