"""The virtual TPU: XLA's CPU PJRT plugin, wrapped so that torch_tpu accepts it as a TPU."""
