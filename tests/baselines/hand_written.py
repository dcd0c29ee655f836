"""Cases written by hand: one of the generator's grammar, one of another hand's."""

from brb_jax.data.case import Case, Option

DIGITS = """\
zorav: 48291067 -> 59302178
zorav: 11223344 -> 22334455
zorav: 90817263 -> 36271809
zorav: 55512345 -> 54321555
"""

BIRDS = """\
Some birds were ringed.

young: grey heron with two rings => heron
old: grey heron with six rings → stork
young: a white stork with six rings -> crane
"""


def case(context, query, texts, domain, task="MemoryRet", number=1):
    types = {3: ("correct", "retrieval_similar", "random_wrong"), 4: ("correct", "retrieval_similar", "old_rule", "x")}
    options = tuple(Option("ABCD"[i], text, types[len(texts)][i]) for i, text in enumerate(texts))
    stem = f"{domain}_{task}_M4"
    return Case(f"{stem}/{number}", domain, task, None, None, 4, context, query, options, "A")


def digits_case(number=1, texts=("10000007", "36271809", "81111112")):
    """A silent revision of `zorav`: add one to every digit, later reverse."""
    return case(DIGITS, "zorav: 70000001 ->", texts, "digits", number=number)


def birds_case(number=1, query="young: grey heron with six rings =>", texts=("dove", "crane", "heron")):
    return case(BIRDS, query, texts, "birds", number=number)
