"""Benchmark files and cases: what a case is, how files are named, read, checked and rendered as prompts.

Knows nothing of tokens, models or JAX.
"""
