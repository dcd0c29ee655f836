"""The reference: transformers with torch, float32, batch 1, no padding, one pass an option, float64 log-softmax."""

from __future__ import annotations

import numpy as np
import torch


@torch.inference_mode()
def logprob(model, ids: np.ndarray, scored_from: int) -> float:
    """Summed log-probability of `ids[scored_from:]` given what precedes each."""
    ids = torch.as_tensor(np.asarray(ids, np.int64))
    kept = len(ids) - scored_from  # logits are kept where they predict a scored token, the pass is over all inputs
    logits = model(ids[None, :-1], logits_to_keep=kept).logits[0]
    return float(torch.log_softmax(logits.double(), -1).gather(-1, ids[scored_from:, None]).sum())


@torch.inference_mode()
def token_logprobs(model, ids: np.ndarray) -> np.ndarray:
    """Log-probability of each of `ids[1:]` given what precedes it."""
    ids = torch.as_tensor(np.asarray(ids, np.int64))
    logits = model(ids[None, :-1]).logits[0]
    return torch.log_softmax(logits.double(), -1).gather(-1, ids[1:, None])[:, 0].numpy()
