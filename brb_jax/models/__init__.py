"""The decoder: one configurable Flax NNX model, attention by tree, and the model families that configure it."""
