"""The bridge from torch to the kernels: one file per torch op that calls a JAX operation.

The only package of the plugin that imports :mod:`torchtpu_kernels`. Its modules import JAX, so they
are imported where a model runs, never in the API server.
"""
