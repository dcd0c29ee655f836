"""A model of your own: what `--model=package.module:build` returns. Described for users in docs/own_model.md.

Knows how such a model is declared and found; its parameters are the business of `checkpoints.own_parameters`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from jax.sharding import Mesh, PartitionSpec

Signature = Literal["tree", "packed", "plain"]
SIGNATURES: tuple[Signature, ...] = ("tree", "packed", "plain")  # The most capable first.


class OwnModelError(ValueError):
    """A model of the user's own that cannot be found, is declared wrongly, or does not do what it should."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class OwnModel:
    """A language model as pure functions of its parameters.

    At least one of the functions `tree`, `packed` and `plain` is given; of several the first is used, because it
    computes least. Each takes the parameters and int32 arrays `[B, T]`, and returns, for every slot, what predicts the
    token after it: hidden states `[B, T, D]` where `unembed` is given, float32 logits `[B, T, V]` where it is not.

    Attributes:
        tokenizer: A directory with a fast tokenizer as transformers saves it, or a Hugging Face Hub id.
        vocab_size: Width of the logits, V. No token id reaches it.
        max_length: Longest input, in tokens.
        parameters: Any pytree of arrays; or of `jax.ShapeDtypeStruct`, if a checkpoint is named. Dtypes are kept.
        tree: `(parameters, tokens, positions, subtree_end)`: slot i sees slot j ⇔ j ≤ i < subtree_end[j].
        packed: `(parameters, tokens, positions, segment_ids)`: slot i sees slot j ⇔ j ≤ i and they are in the same
            segment. Segments count from 1, padding is 0, positions restart in each segment.
        plain: `(parameters, tokens)`: slot i sees slot j ⇔ j ≤ i. One text a row, padded on the right with id 0.
        unembed: `(parameters, hidden)`: from hidden states `[B, S, D]` of the S scored slots of each row to float32
            logits `[B, S, V]`. Without it the functions return logits of all slots, which takes their memory.
        checkpoint: An Orbax checkpoint, from which `parameters` is restored; nothing else in it is read.
        checkpoint_key: Where in the checkpoint's tree the parameters are, as in `params` or `model/params`.
        sharding: Pairs of a regular expression and a PartitionSpec over the mesh axes. A parameter goes where the
            first expression found in its path (`decoder/layer_0/mlp/kernel`) says, or is whole on every device.
    """

    tokenizer: str | os.PathLike[str]
    vocab_size: int
    max_length: int
    parameters: Any
    tree: Callable[..., Any] | None = None
    packed: Callable[..., Any] | None = None
    plain: Callable[..., Any] | None = None
    unembed: Callable[..., Any] | None = None
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_key: str = ""
    sharding: Sequence[tuple[str, PartitionSpec]] = ()

    @property
    def signature(self) -> Signature:
        return next(name for name in SIGNATURES if getattr(self, name) is not None)

    def bind(self, parameters: Any) -> BoundModel:
        """The model with its parameters in place."""
        return BoundModel(self, parameters)


@dataclasses.dataclass(frozen=True, eq=False)
class BoundModel:
    """A model of one's own as scoring asks for it (`scoring.loglikelihood.LanguageModel`)."""

    own: OwnModel
    parameters: Any

    def hidden_states(self, *inputs_BT: Any) -> Any:
        """Hidden states of every slot; where the model returns logits at once, these."""
        return getattr(self.own, self.own.signature)(self.parameters, *inputs_BT)

    def logits(self, hidden_BSD: Any) -> Any:
        return hidden_BSD if self.own.unembed is None else self.own.unembed(self.parameters, hidden_BSD)


@dataclasses.dataclass(frozen=True)
class OwnModelSource:
    """Where a model of one's own comes from.

    Attributes:
        name: As given, `package.module:function`.
        file: The file of the function.
        sha256: Of that file. What it imports is not in it.
    """

    name: str
    file: str
    sha256: str


def names_own_model(model: str) -> bool:
    """Whether `--model` names a function (`package.module:build`) and not a path.

    >>> [names_own_model(text) for text in ("team.models:build", "gs://bucket/model", "owner/name", "checkpoints/a")]
    [True, False, False, False]
    """
    return re.fullmatch(r"[^\W\d][\w.]*:[^\W\d]\w*", model) is not None and not Path(model).exists()


def build_own_model(name: str, mesh: Mesh) -> tuple[OwnModel, OwnModelSource]:
    """Imports `package.module:build` and calls it, as `build()`, or `build(mesh=…)` if it has a parameter of that name.

    Modules are looked for in the working directory, then among the installed ones.

    Raises:
        OwnModelError: There is no such module or function, it raises, or what it returns is not as `OwnModel` says.
    """
    module_name, _, function_name = name.partition(":")
    if str(Path.cwd()) not in sys.path and "" not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise OwnModelError(
                f"--model={name}: there is no module {error.name!r} in {Path.cwd()} or among the installed ones"
            ) from error
        raise OwnModelError(f"--model={name}: importing it failed: {describe(error)}") from error
    except Exception as error:
        raise OwnModelError(f"--model={name}: importing it failed: {describe(error)}") from error
    build = getattr(module, function_name, None)
    if not callable(build):
        raise OwnModelError(f"--model={name}: {module.__file__} has no function {function_name!r}")
    try:
        own = build(mesh=mesh) if "mesh" in inspect.signature(build).parameters else build()
    except Exception as error:
        raise OwnModelError(f"--model={name}: {function_name}() failed: {describe(error)}") from error
    if not isinstance(own, OwnModel):
        raise OwnModelError(
            f"--model={name}: {function_name}() returned a {type(own).__name__}; "
            "it must return a brb_jax.models.own_model.OwnModel"
        )
    _check_declaration(name, own)
    file = Path(inspect.getfile(inspect.unwrap(build)) if inspect.isfunction(build) else str(module.__file__))
    return own, OwnModelSource(name, str(file), hashlib.sha256(file.read_bytes()).hexdigest())


def describe(error: BaseException) -> str:
    """An error of the user's code in one line: what, and where it came from."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    for candidate in traceback.extract_tb(error.__traceback__):
        if "site-packages" not in candidate.filename and not candidate.filename.startswith("<"):
            frame = candidate
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message} ({frame.filename}, line {frame.lineno})"


def _check_declaration(name: str, own: OwnModel) -> None:
    if not any(getattr(own, signature) is not None for signature in SIGNATURES):
        raise OwnModelError(f"--model={name}: the OwnModel has none of the functions tree, packed and plain")
    for field in (*SIGNATURES, "unembed"):
        value = getattr(own, field)
        if value is not None and not callable(value):
            raise OwnModelError(f"--model={name}: {field} is a {type(value).__name__}, not a function")
    for field in ("vocab_size", "max_length"):
        value = getattr(own, field)
        if not isinstance(value, int) or value < 1:
            raise OwnModelError(f"--model={name}: {field} is {value!r}; it must be a positive whole number")
    if own.checkpoint is None and own.checkpoint_key:
        raise OwnModelError(f"--model={name}: there is a checkpoint_key, {own.checkpoint_key!r}, but no checkpoint")
    for rule in own.sharding:
        try:
            pattern, spec = rule
            re.compile(pattern)
        except (TypeError, ValueError, re.error) as error:
            raise OwnModelError(
                f"--model={name}: sharding: {rule!r} is not a pair of a regular expression and a PartitionSpec"
            ) from error
        if not isinstance(spec, PartitionSpec):
            raise OwnModelError(
                f"--model={name}: sharding: {spec!r} for {pattern!r} is not a jax.sharding.PartitionSpec"
            )
