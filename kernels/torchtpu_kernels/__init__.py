"""JAX operations for large-language-model inference on Google TPUs.

One folder per operation under :mod:`torchtpu_kernels.ops`; this distribution imports JAX only.
"""
