"""What the operations share: argument checks."""
