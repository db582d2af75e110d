"""Transformers by formula: activations of a block, keys and values that are kept, operations of a step."""

from __future__ import annotations

from vramscope.theory.formula import Formula

_KORTHIKANTI = "Korthikanti et al. 2022, Reducing Activation Recomputation, section 4"


def activations(*, layers: int, batch: int, seq: int, hidden: int, heads: int) -> Formula:
    """What the blocks of a GPT save in half precision."""
    unit, square = seq * batch * hidden, 5 * heads * seq * seq * batch
    return Formula(
        "transformer activations",
        "L·s·b·h·(34 + 5·a·s/h); with flash attention L·(34·s·b·h + 4·a·s·b); with checkpointing "
        "2·L·s·b·h and one block whole",
        {
            "saved_bytes": layers * (34 * unit + square),
            "flash_saved_bytes": layers * (34 * unit + 4 * heads * seq * batch),
            "checkpointed_saved_bytes": layers * 2 * unit + 34 * unit + square,
            "checkpointed_flash_saved_bytes": layers * 2 * unit + 34 * unit + 4 * heads * seq * batch,
        },
        "A GPT's block in half: an MLP of 4·h with GELU, two LayerNorms, dropout everywhere, no parallelism; "
        "embeddings, head and loss are not in it, and other blocks (gated MLPs, fewer keys) differ.",
        f"{_KORTHIKANTI}; Dao et al. 2022; torch.utils.checkpoint",
    )


def kv_cache(
    *,
    layers: int,
    batch: int,
    seq: int,
    head: int,
    heads: int,
    kv_heads: int = 0,
    window: int = 0,
    bytes: int = 2,
) -> Formula:
    """Keys and values of all tokens: kv_heads = heads is MHA, 1 is MQA, between them GQA; window 0 is none."""
    kept, groups = min(seq, window) if window else seq, kv_heads or heads
    size = 2 * layers * batch * kept * groups * head * bytes
    kind = {heads: "MHA", 1: "MQA"}.get(groups, "GQA")
    return Formula(
        "KV cache",
        "2·L·batch·min(seq, window)·kv_heads·head·bytes",
        {"kv_cache_bytes": size, "share_of_mha": groups / heads},
        f"{kind}: {groups} of {heads} heads have keys and values of their own; a cache that grows by joining holds "
        "old and new for a moment, one of fixed size holds all from the start.",
        "Shazeer 2019 (MQA), Ainslie et al. 2023 (GQA), Jiang et al. 2023 (window); transformers/cache_utils.py",
    )


def step_flops(parameters: int, tokens: int, *, trained: bool = True) -> Formula:
    """Operations of a step over so many tokens: two per parameter and token in the forward, four in the backward."""
    times = 6 if trained else 2
    return Formula(
        "step's operations",
        "6·P·T, of which forward 2·P·T" if trained else "2·P·T",
        {"step_flops": times * parameters * tokens},
        "Every parameter is in one matrix product per token: embeddings are counted though they multiply nothing, "
        "attention's square is not.",
        "Kaplan et al. 2020, Scaling Laws, section 2.1",
        {"parameters": parameters, "tokens": tokens},
    )
