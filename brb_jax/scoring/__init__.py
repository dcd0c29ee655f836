"""Batches ─► log-likelihoods: the mesh, parameters on it, one jitted function a bucket, and the loop over batches."""
