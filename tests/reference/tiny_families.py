"""Tiny configs of every family, at least two each, that switch on what it can do. A new family is an entry here.

Together a family's entries have tied and untied embeddings, grouped and multi-query heads, heads whose widths do not
add up to the model's, windows shorter than an input, and each feature of its own.
"""

from tiny_experts import TINY_EXPERTS
from transformers import (
    Gemma2Config,
    Gemma3TextConfig,
    GemmaConfig,
    GPT2Config,
    GPTNeoXConfig,
    GraniteConfig,
    LlamaConfig,
    MistralConfig,
    Olmo2Config,
    Olmo3Config,
    Phi3Config,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3Config,
    SmolLM3Config,
)

SIZES = {"vocab_size": 96, "hidden_size": 32, "intermediate_size": 56, "max_position_embeddings": 64}
GROUPED = {**SIZES, "num_attention_heads": 4, "num_key_value_heads": 2}
MULTI_QUERY = {**SIZES, "hidden_size": 30, "num_attention_heads": 3, "num_key_value_heads": 1}
TIED, UNTIED = {"tie_word_embeddings": True}, {"tie_word_embeddings": False}
SHALLOW, DEEP = {"num_hidden_layers": 2}, {"num_hidden_layers": 4}

LINEAR = {"rope_type": "linear", "rope_theta": 1_000.0, "factor": 4.0}
YARN = {"rope_type": "yarn", "rope_theta": 1_000.0, "factor": 4.0, "original_max_position_embeddings": 16}
YARN_IN_FULL = {
    **YARN,
    "attention_factor": 1.3,
    "beta_fast": 4.0,
    "beta_slow": 0.5,
    "truncate": False,
}
LLAMA3 = {**YARN, "rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0}
# Contexts of 40 tokens lie on either side of these two switches, with options on both sides of one.
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 1_000.0, "factor": 3.0}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 1_000.0,
    "short_factor": [1.0, 1.1, 1.3, 1.8],
    "long_factor": [1.0, 1.5, 2.5, 4.0],
}
SWITCH = 42

TINY: dict[str, PreTrainedConfig] = {
    "llama_llama3": LlamaConfig(**GROUPED, **SHALLOW, **TIED, rope_parameters=LLAMA3),
    "llama_biased": LlamaConfig(**MULTI_QUERY, **SHALLOW, **UNTIED, head_dim=12, attention_bias=True, mlp_bias=True),
    "llama_dynamic": LlamaConfig(
        **{**GROUPED, "max_position_embeddings": SWITCH}, **SHALLOW, **UNTIED, rope_parameters=DYNAMIC
    ),
    "llama_longrope": LlamaConfig(
        **GROUPED,
        **SHALLOW,
        **UNTIED,
        rope_parameters={**LONGROPE, "factor": 8.0, "original_max_position_embeddings": SWITCH},
    ),
    "gemma3_windows": Gemma3TextConfig(**GROUPED, **DEEP, **TIED, head_dim=16, sliding_window=4),
    "gemma3_scaled": Gemma3TextConfig(
        **MULTI_QUERY,
        **DEEP,
        **UNTIED,
        head_dim=12,
        sliding_window=9,
        final_logit_softcapping=6.0,
        query_pre_attn_scalar=24,
        layer_types=["sliding_attention", "full_attention"] * 2,
        rope_parameters={
            "sliding_attention": {"rope_type": "default", "rope_theta": 1_000.0},
            "full_attention": {**YARN, "truncate": True},
        },
    ),
    "qwen2_plain": Qwen2Config(**GROUPED, **SHALLOW, **TIED),
    "qwen2_upper_windows": Qwen2Config(
        **MULTI_QUERY, **DEEP, **UNTIED, use_sliding_window=True, sliding_window=5, max_window_layers=2
    ),
    "qwen2_yarn": Qwen2Config(**GROUPED, **SHALLOW, **UNTIED, rope_parameters=YARN),
    "qwen3_odd_heads": Qwen3Config(**MULTI_QUERY, **SHALLOW, **TIED, head_dim=14, attention_bias=True),
    "qwen3_windows": Qwen3Config(
        **GROUPED,
        **DEEP,
        **UNTIED,
        head_dim=16,
        use_sliding_window=True,
        sliding_window=4,
        layer_types=["sliding_attention", "full_attention"] * 2,
        rope_parameters=LINEAR,
    ),
    "mistral_window": MistralConfig(**GROUPED, **SHALLOW, **UNTIED, sliding_window=6),
    "mistral_odd_heads": MistralConfig(
        **MULTI_QUERY, **DEEP, **TIED, head_dim=14, sliding_window=None, rope_parameters=YARN_IN_FULL
    ),
    "gemma2_caps": Gemma2Config(
        **GROUPED,
        **DEEP,
        **TIED,
        head_dim=16,
        sliding_window=5,
        attn_logit_softcapping=2.0,
        final_logit_softcapping=5.0,
        query_pre_attn_scalar=9,
    ),
    "gemma2_uncapped": Gemma2Config(
        **{**MULTI_QUERY, "hidden_size": 24},
        **SHALLOW,
        **UNTIED,
        head_dim=12,
        sliding_window=3,
        attn_logit_softcapping=None,
        final_logit_softcapping=None,
        attention_bias=True,
    ),
    "gemma_multi_query": GemmaConfig(**MULTI_QUERY, **SHALLOW, **TIED, head_dim=18),
    "gemma_untied": GemmaConfig(**GROUPED, **SHALLOW, **UNTIED, head_dim=16, attention_bias=True),
    "olmo2_grouped": Olmo2Config(**GROUPED, **SHALLOW, **TIED),
    "olmo2_biased": Olmo2Config(**MULTI_QUERY, **SHALLOW, **UNTIED, attention_bias=True, rope_parameters=LINEAR),
    "olmo3_windows": Olmo3Config(**GROUPED, **DEEP, **UNTIED, sliding_window=4),
    "olmo3_yarn": Olmo3Config(
        **MULTI_QUERY,
        **DEEP,
        **TIED,
        sliding_window=7,
        layer_types=["full_attention", "sliding_attention"] * 2,
        rope_parameters={
            "sliding_attention": {"rope_type": "default", "rope_theta": 1_000.0},
            "full_attention": {**YARN, "attention_factor": 1.3},
        },
    ),
    "smollm3_every_fourth": SmolLM3Config(**GROUPED, **DEEP, **TIED),
    "smollm3_windows": SmolLM3Config(
        **MULTI_QUERY,
        **DEEP,
        **UNTIED,
        no_rope_layers=[0, 1, 1, 0],
        use_sliding_window=True,
        sliding_window=5,
        attention_bias=True,
        mlp_bias=True,
        rope_parameters=YARN,
    ),
    "phi3_window": Phi3Config(**GROUPED, **SHALLOW, **UNTIED, sliding_window=6),
    "phi3_longrope": Phi3Config(
        **{**GROUPED, "hidden_size": 40},  # heads of 10, of which 8 channels are rotated
        **SHALLOW,
        **TIED,
        original_max_position_embeddings=SWITCH,
        partial_rotary_factor=0.8,
        rope_parameters=LONGROPE,
    ),
    "granite_multipliers": GraniteConfig(
        **GROUPED,
        **SHALLOW,
        **TIED,
        embedding_multiplier=7.0,
        residual_multiplier=0.3,
        attention_multiplier=0.2,
        logits_scaling=3.0,
    ),
    "granite_biased": GraniteConfig(
        **MULTI_QUERY,
        **SHALLOW,
        **UNTIED,
        attention_bias=True,
        mlp_bias=True,
        residual_multiplier=1.5,
        attention_multiplier=0.1,
    ),
    "gpt2_plain": GPT2Config(vocab_size=96, n_positions=64, n_embd=32, n_layer=2, n_head=4),
    "gpt2_odd": GPT2Config(
        vocab_size=97,
        n_positions=50,
        n_embd=30,
        n_layer=3,
        n_head=3,
        n_inner=44,
        activation_function="gelu",
        scale_attn_weights=False,
        **UNTIED,
    ),
    "gpt_neox_parallel": GPTNeoXConfig(**SIZES, num_attention_heads=4, **SHALLOW, **UNTIED),
    "gpt_neox_sequential": GPTNeoXConfig(
        **{**SIZES, "hidden_size": 36},
        num_attention_heads=3,
        **SHALLOW,
        **TIED,
        use_parallel_residual=False,
        attention_bias=False,
        rope_parameters={**LINEAR, "partial_rotary_factor": 0.5},
    ),
    **TINY_EXPERTS,
}
