"""The longest input of a run: the model's, unless a flag may and does say otherwise."""

import pytest

from brb_jax.config import RunError, length_limit


def test_the_flag_and_the_model():
    assert length_limit(None, False, 100) == length_limit(100, False, 100) == 100
    assert length_limit(60, False, 100) == 60
    assert length_limit(101, True, 100) == 101
    with pytest.raises(RunError, match=r"made for \(100 tokens\): lower it, or add --allow_extrapolation"):
        length_limit(101, False, 100)


@pytest.mark.parametrize("allow_extrapolation", [False, True])
def test_a_table_of_positions_has_an_end(allow_extrapolation):
    assert length_limit(100, allow_extrapolation, 100, has_table=True) == 100
    with pytest.raises(RunError, match="--max_length=101 is more than the model's table of 100 positions has"):
        length_limit(101, allow_extrapolation, 100, has_table=True)
