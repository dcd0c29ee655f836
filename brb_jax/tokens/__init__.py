"""Text ─► token ids with a scored span ─► prefix tree ─► packed rows ─► batches. Knows no model."""
