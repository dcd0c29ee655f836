"""Text ─► token ids with a scored span ─► prefix tree ─► packed rows ─► batches. Pure numpy; knows no model."""
