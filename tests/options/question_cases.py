"""Questions for the tests of this folder."""

from brb_jax.data.filename import FileName
from brb_jax.data.questions import Question

WORDS = """\
zorav: kite lark jade moss -> moss jade lark kite
zorav: pond acid rain calf -> calf rain acid pond
"""
WORDS_QUERY = "zorav: pond lark rain calf ->"
WORDS_ANSWER = "calf rain lark pond"


def question(
    answer=WORDS_ANSWER,
    context=WORDS,
    query=WORDS_QUERY,
    task="MemoryRet",
    domain="birds",
    metadata=None,
    number=0,
) -> Question:
    k, edit_k = (2 if task == "MemoryCom" else None), (1 if task == "MemoryRev" else None)
    name = FileName(domain, task, k, edit_k, 2)
    return Question(f"{name.stem}/{number}", name, context, query, answer, metadata or {})
