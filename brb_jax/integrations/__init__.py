"""Where brb_jax meets other systems. Nothing here is needed to evaluate a model."""
