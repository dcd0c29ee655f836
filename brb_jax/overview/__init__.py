"""What a dataset holds and exactly what a model will read of it. `brb_jax.preview` is its command; no JAX here."""
