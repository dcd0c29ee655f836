"""Tiny configs of the families with experts, at least two each, that switch on what each of them can do.

Together they have layers with and without experts in every order, experts in groups and not, shared ones, every way of
scoring and weighting, full and narrow queries, and YaRN with every one of its scales.
"""

from transformers import (
    DeepseekV2Config,
    DeepseekV3Config,
    GptOssConfig,
    MixtralConfig,
    PreTrainedConfig,
    Qwen3MoeConfig,
)

SIZES = {"vocab_size": 96, "hidden_size": 32, "intermediate_size": 40, "max_position_embeddings": 64}
GROUPED = {**SIZES, "num_attention_heads": 4, "num_key_value_heads": 2}
SHALLOW, DEEP = {"num_hidden_layers": 2}, {"num_hidden_layers": 4}
TIED, UNTIED = {"tie_word_embeddings": True}, {"tie_word_embeddings": False}
YARN = {"rope_type": "yarn", "rope_theta": 1_000.0, "factor": 4.0, "original_max_position_embeddings": 16}

LATENT = {
    **SIZES,
    "moe_intermediate_size": 24,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "kv_lora_rank": 20,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 12,
    "v_head_dim": 10,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
}
NARROW_QUERIES, FULL_QUERIES = {"q_lora_rank": 28}, {"q_lora_rank": None}

TINY_EXPERTS: dict[str, PreTrainedConfig] = {
    "mixtral_plain": MixtralConfig(**GROUPED, **SHALLOW, **UNTIED, num_local_experts=4),
    "mixtral_windowed": MixtralConfig(
        **GROUPED,
        **SHALLOW,
        **TIED,
        head_dim=12,
        num_local_experts=8,
        num_experts_per_tok=3,
        sliding_window=17,
        rope_parameters={"rope_type": "linear", "rope_theta": 500.0, "factor": 2.0},
    ),
    "qwen3_moe_normalized": Qwen3MoeConfig(
        **GROUPED,
        **SHALLOW,
        **UNTIED,
        head_dim=16,
        num_experts=8,
        moe_intermediate_size=24,
        norm_topk_prob=True,
        num_experts_per_tok=3,
    ),
    "qwen3_moe_every_other_layer": Qwen3MoeConfig(
        **GROUPED,
        **DEEP,
        **TIED,
        num_experts=8,
        moe_intermediate_size=24,
        num_experts_per_tok=2,
        attention_bias=True,
        decoder_sparse_step=2,
        mlp_only_layers=[3],
        rope_parameters=YARN,
    ),
    "deepseek_v3_grouped": DeepseekV3Config(
        **LATENT,
        **NARROW_QUERIES,
        **UNTIED,
        num_hidden_layers=3,
        first_k_dense_replace=1,
        n_group=4,
        topk_group=2,
        rope_parameters={**YARN, "mscale": 0.8, "mscale_all_dim": 0.6, "beta_fast": 8},
    ),
    "deepseek_v3_one_group": DeepseekV3Config(
        **LATENT,
        **FULL_QUERIES,
        **TIED,
        **SHALLOW,
        first_k_dense_replace=0,
        n_group=1,
        topk_group=1,
        rope_interleave=False,
        norm_topk_prob=False,
        attention_bias=True,
    ),
    "deepseek_v2_grouped": DeepseekV2Config(
        **LATENT,
        **NARROW_QUERIES,
        **UNTIED,
        num_hidden_layers=3,
        first_k_dense_replace=2,
        n_shared_experts=1,
        n_group=4,
        topk_group=2,
        topk_method="group_limited_greedy",
        routed_scaling_factor=16.0,
        rope_parameters={**YARN, "mscale": 0.7, "mscale_all_dim": 0.7},
    ),
    "deepseek_v2_greedy": DeepseekV2Config(
        **LATENT, **FULL_QUERIES, **TIED, **SHALLOW, first_k_dense_replace=1, n_shared_experts=2, attention_bias=True
    ),
    "gpt_oss_clamped": GptOssConfig(
        **GROUPED,
        **SHALLOW,
        **UNTIED,
        head_dim=16,
        num_local_experts=4,
        num_experts_per_tok=2,
        sliding_window=9,
        swiglu_limit=0.5,
        rope_parameters={**YARN, "truncate": False},
    ),
    "gpt_oss_windows_of_its_own": GptOssConfig(
        **GROUPED,
        **TIED,
        num_hidden_layers=3,
        head_dim=10,
        num_local_experts=8,
        num_experts_per_tok=3,
        sliding_window=20,
        layer_types=["full_attention", "sliding_attention", "sliding_attention"],
        attention_bias=False,
        swiglu_alpha=1.0,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000.0},
    ),
}
