"""Wrong options for questions that have none: found in the context, mutated, computed, or asked of an LLM.

    question ─► texts by option type (`making`) ─► Case, its labels balanced over the file (`file`)

Knows the text of questions and the domains' libraries; an LLM is a function from a prompt to a reply.
"""
