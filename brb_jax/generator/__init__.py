"""Writes benchmark files whose truth is held by programs. Knows nothing of tokens, models or JAX.

    domain + seed ─► context (what names mean, examples) ─► question (program, distractors) ─► Case ─► file

`certificates` reads the rendered text back, knowing only the domain's library, and shows that each question
has one answer.
"""
