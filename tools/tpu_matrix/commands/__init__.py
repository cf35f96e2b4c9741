"""One module per verb of the command line; `tpu_matrix.cli` imports them when called."""
