"""Device memory of a process outside torch's allocators: the CUDA context and what is loaded into it.

`nvidia-smi` shows this plus what torch has reserved.  Three parts:

1. The bare context.  Measured ones are in MEASURED_CONTEXTS.  For the others, NVIDIA's description of its
   parts (developer forum, thread 39558: per context one local-memory buffer for every thread that can be
   resident) leads to

       bare = 25 MiB + SMs x (threads per SM x 1 KiB + 3.5 x (256 KiB registers + L1 and shared memory))

   1 KiB a thread is the default stack; that the second term is a save area for preemption is a guess.
   The two constants come from RTX 3090, RTX 6000 Ada and RTX PRO 6000 (off by 0, 2 and 1 MiB); H100 and
   A100, which they were not fitted to, are off by 0 and 8, B200 by 34.
2. Kernels as they are loaded one by one, and handles of libraries: 15 out-of-memory messages of single-card
   runs (torch 2.1 and later print used, allocated and reserved memory in one) give context + 39 MiB in the
   median, 14 of them within 0 to 150, one at -5.  Taken as 50, 0 to 150.
3. With CUDA_MODULE_LOADING=EAGER, all machine code for the card of every library that is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from vramscope.cards.card import Card
from vramscope.units import KIB, MIB

#: MiB of a context in which nothing was launched, by card, and where that was read.
MEASURED_CONTEXTS = MappingProxyType(
    {
        "rtx-3090": (256, "invoke-ai/InvokeAI #9413: idle after start, driver 610.43"),
        "rtx-6000-ada": (426, "unslothai/unsloth-zoo #1053: after mem_get_info, CUDA 13.0"),
        "l40s": (426, "taken from the RTX 6000 Ada, the same chip with as many SMs"),
        "rtx-pro-6000": (555, "ggml-org/llama.cpp #23604: cudaMemGetInfo against NVML"),
        "a100-40gb": (414, "awslabs/keys_values #92: other ranks in an out-of-memory message, CUDA 12.8"),
        "a100-80gb": (414, "kvcache-ai/Mooncake #3973: stray context on an A800, the same chip, CUDA 12.9"),
        "h100": (520, "NVIDIA/TensorRT-LLM #1604: stray contexts on 8 cards, driver 550.54"),
        "h200": (520, "kvcache-ai/Mooncake #3973 and #2307: stray context, driver 570.148"),
        "b200": (614, "unslothai/unsloth #8669 (612) and kvcache-ai/Mooncake #3434 (616)"),
        "v100-16gb": (307, "rapidsai/ucx-py #102: scheduler process, driver of 2019"),
        "v100-32gb": (307, "rapidsai/ucx-py #102: scheduler process, driver of 2019"),
    }
)

_CONTEXT_BASE_BYTES = 25 * MIB
_STACK_BYTES = KIB  # cudaLimitStackSize by default
_REGISTER_FILE_BYTES = 256 * KIB
_SM_STATES_HALVES = 7  # 3.5 copies of an SM's registers, L1 and shared memory

_LAZY_BYTES = 50 * MIB
_LAZY_HIGH_BYTES = 150 * MIB

#: MiB of cubins that the driver would choose for a capability, unpacked, in torch 2.14.1+cu130:
#: (libtorch_cuda, cuBLAS with cuBLASLt, cuDNN 9.24's ops, adv and engines_precompiled).  Read from the
#: libraries' fatbins: of each module the highest minor version up to the card's, within its major version.
_CUBINS = MappingProxyType(
    {
        (7, 5): (624.7, 194.9, 349.4),
        (8, 0): (702.9, 241.4, 366.7),
        (8, 6): (702.6, 241.0, 373.9),
        (8, 9): (707.2, 265.8, 373.9),
        (9, 0): (785.1, 415.5, 392.0),
        (10, 0): (1157.8, 217.3, 597.2),
        (12, 0): (1094.1, 297.0, 637.3),
    }
)
# Code, constants and variables are 609 of 703 MiB of libtorch_cuda's cubins for 8.0 and 683 of 785 for 9.0;
# the rest (symbols, relocations, notes) stays on the host.  The same share is assumed for other libraries.
_LOADED_SHARE = 0.87
# Readings that fit eager loading lie 8 % below to 17 % above this model (A100 1443 and 1695 MiB in GPUMemNet,
# T4 1012 and 1106 in two out-of-memory messages), with wheels of other versions.
_EAGER_HIGH = 1.17


@dataclass(frozen=True, slots=True)
class Outside:
    """An estimate of the device memory outside the allocator, in bytes, with its interval."""

    bytes: int
    low_bytes: int
    high_bytes: int
    how: str  #: where the context's size is from: "measured context" or "formula"
    loading: str  #: "lazy" or "eager"
    note: str  #: for people: what it is made of and how sure it is


def outside_of(card: Card, *, eager: bool = False) -> Outside:
    """What a torch process takes on `card` beside the allocator's memory, with one process on the card.

    `eager` is for CUDA_MODULE_LOADING=EAGER (or a driver older than 515, which has no lazy loading).
    Not in it: NCCL's buffers, and the stack of kernels that need more than 1 KiB a thread.
    """
    context, how, origin = _context(card)
    if eager:
        return _eager(card, context, how, origin)
    return Outside(
        bytes=context + _LAZY_BYTES,
        low_bytes=context,
        high_bytes=context + _LAZY_HIGH_BYTES,
        how=how,
        loading="lazy",
        note=f"context {context // MIB} MiB ({origin}); kernels loaded when first used and library handles:"
        f" {_LAZY_BYTES // MIB} MiB, 0 to {_LAZY_HIGH_BYTES // MIB} in 14 of 15 readings",
    )


def context_by_formula(card: Card) -> int:
    """Bytes of a bare context by the formula above; within about 10 MiB, 40 on a new generation."""
    state = _REGISTER_FILE_BYTES + card.l1_bytes
    per_sm = card.threads_per_sm * _STACK_BYTES + _SM_STATES_HALVES * state // 2
    return _CONTEXT_BASE_BYTES + card.sms * per_sm


def _context(card: Card) -> tuple[int, str, str]:
    measured = MEASURED_CONTEXTS.get(card.id)
    if measured is not None:
        return measured[0] * MIB, "measured context", measured[1]
    slack = 10 if card.capability < (10, 0) else 40
    return context_by_formula(card), "formula", f"formula, within about {slack} MiB"


def _eager(card: Card, context: int, how: str, origin: str) -> Outside:
    """From 'cuDNN is never used' to the model's largest miss; cuDNN counts, as a convolution loads it."""
    capability = _nearest_capability(card)
    torch, blas, cudnn = (round(_LOADED_SHARE * size * MIB) for size in _CUBINS[capability])
    total = context + torch + blas + cudnn
    return Outside(
        bytes=total,
        low_bytes=context + torch + blas,
        high_bytes=round(_EAGER_HIGH * total),
        how=how,
        loading="eager",
        note=f"context {context // MIB} MiB ({origin}); all code for {capability[0]}.{capability[1]} of torch"
        f" 2.14.1+cu130: libtorch_cuda {torch // MIB}, cuBLAS {blas // MIB}, cuDNN {cudnn // MIB} MiB,"
        " the last only once it is used; other wheels differ",
    )


def _nearest_capability(card: Card) -> tuple[int, int]:
    """The capability with known code sizes that comes closest from below; for older cards the oldest."""
    below = [capability for capability in _CUBINS if capability <= card.capability]
    return max(below) if below else min(_CUBINS)
