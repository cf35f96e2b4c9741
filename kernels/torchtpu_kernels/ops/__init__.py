"""The operations, one folder each: api (public function), reference (plain jax.numpy), cases."""
