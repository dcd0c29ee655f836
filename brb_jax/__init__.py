"""brb_jax: BeyondRetrievalBench (pretrain version) for JAX.

Data flows one way, and every arrow is one function::

    files ─► Case ─► Request ─► prefix tree ─► row batches ─► log-likelihoods ─► journal ─► metrics ─► report
    data/            tokens/                                  scoring/           results/

`brb_jax.run` tells that story; `python -m brb_jax.main` starts it. Importing any module of the package leaves
JAX's backends untouched, so `jax.distributed.initialize` can still be called afterwards.

Shape letters, used as suffixes of array names throughout (`tokens_BT`, `x_BTD`):

    B  rows of a batch          N  query heads          V  vocabulary
    T  slots of a row           K  key/value heads      L  layers
    S  scored positions         H  head width           F  MLP width
    D  model width              G  query heads per key/value head (N / K)
    E  experts                  C  experts of a token   X  width of an expert's MLP
    W  width of a head's values, where it is not H
"""

__version__ = "0.1.0"
