"""cuDNN's recurrent layers: sizes by formula and by the installed library, in torch's own use."""

from __future__ import annotations

# Compares the stand-in with the installed library, whose weight layout needs no device.
LAYOUT = """
import ctypes, itertools, os
import torch
ours, P = ctypes.CDLL(None), ctypes.c_void_p
real = ctypes.CDLL(os.environ["VRAMSCOPE_CUDNN"], mode=os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
handle = ctypes.create_string_buffer(1 << 16)
BASE, LSTM, GRU, RELU, TANH = 1 << 40, 2, 3, 0, 1
def made(lib, kind):
    d = P(); assert getattr(lib, f"cudnnCreate{kind}Descriptor")(ctypes.byref(d)) == 0; return d
def described(lib, d):
    kind, n, size, stride = ctypes.c_int(), ctypes.c_int(), (ctypes.c_int * 8)(), (ctypes.c_int * 8)()
    lib.cudnnGetTensorNdDescriptor(d, 3, ctypes.byref(kind), ctypes.byref(n), size, stride)
    return [n.value, *size[:n.value], *stride[:n.value]] if n.value else [0]
def layout(lib, cell, bias_mode, bidirectional, input, hidden, projection, layers):
    rnn, dropout = made(lib, "RNN"), made(lib, "Dropout")
    none = ctypes.c_float(0), None, ctypes.c_size_t(0), ctypes.c_ulonglong(0)
    assert lib.cudnnSetDropoutDescriptor(dropout, handle, *none) == 0
    assert lib.cudnnSetRNNDescriptor_v8(rnn, 0, cell, bias_mode, bidirectional, 0, 0, 0, 0, input, hidden,
                                        projection, layers, dropout, 1) == 0
    space = ctypes.c_size_t()
    assert lib.cudnnGetRNNWeightSpaceSize(handle, rnn, ctypes.byref(space)) == 0
    found = [space.value]
    parts = {LSTM: 9, GRU: 6}.get(cell, 2)
    for pseudo, which in itertools.product(range(layers * (1 + bidirectional)), range(parts)):
        matrix, bias, m, b = made(lib, "Tensor"), made(lib, "Tensor"), P(), P()
        assert lib.cudnnGetRNNWeightParams(handle, rnn, pseudo, space, P(BASE), which, matrix,
                                           ctypes.byref(m), bias, ctypes.byref(b)) == 0
        # the library leaves the bias descriptor of a projection as it finds it
        found.append((m.value, b.value, described(lib, matrix), described(lib, bias) if b.value else None))
    return found
cases = 0
choices = (LSTM, GRU, RELU, TANH), (0, 2), (0, 1), (0, 1), (1, 3)
for cell, bias_mode, both, projected, layers in itertools.product(*choices):
    if projected and cell != LSTM: continue
    case = (cell, bias_mode, both, 40, 64, 48 if projected else 64, layers)
    assert layout(ours, *case) == layout(real, *case), case
    cases += 1
print(cases)
"""


def test_weights_lie_where_the_library_puts_them(virtual):
    assert virtual(LAYOUT).check().stdout.strip() == "40"


TRAIN = """
import torch
from torch import nn
def requested(): return torch.cuda.memory_stats()["requested_bytes.all.current"]
def train(network, x):
    x = x.to("cuda")
    before = requested()
    y = network(x)[0]
    y = y.data if isinstance(y, nn.utils.rnn.PackedSequence) else y
    kept = requested() - before - y.numel() * y.element_size()
    y.float().sum().backward()
    assert all(p.grad is not None and p.grad.shape == p.shape for p in network.parameters())
    return kept
"""
# Reserve spaces in bytes: k T B H directions x element size, k = 6L - 1 for LSTM, 7L - 1 for GRU, or 2L - 1;
# and the initial states that torch makes and keeps: L directions B H, twice for LSTM.
RESERVES = {
    "nn.LSTM(40, 64, 2)": (11 * 50 + 2 * 2) * 8 * 64 * 4,
    "nn.LSTM(40, 64, 2, bidirectional=True)": (11 * 50 + 2 * 2) * 8 * 64 * 2 * 4,
    "nn.GRU(40, 64, 3)": (20 * 50 + 3) * 8 * 64 * 4,
    "nn.RNN(40, 64, 2, bidirectional=True)": (3 * 50 + 2) * 8 * 64 * 2 * 4,
    "nn.LSTM(40, 64, 2, bias=False)": (11 * 50 + 2 * 2) * 8 * 64 * 4,
    "nn.LSTM(40, 64, 2).double()": (11 * 50 + 2 * 2) * 8 * 64 * 8,
    "nn.LSTM(40, 64, 2).half()": (11 * 50 + 2 * 2) * 8 * 64 * 2,
}


def test_the_reserve_is_the_published_formula(virtual):
    lines = "".join(
        f"""
network = ({network}).cuda()
train(network, torch.zeros(50, 8, 40, dtype=next(network.parameters()).dtype))
print(train(network, torch.zeros(50, 8, 40, dtype=next(network.parameters()).dtype)))
"""
        for network in RESERVES
    )
    kept = list(map(int, virtual(TRAIN + lines).check().stdout.split()))

    # THEN what is kept for backward beside the output is the reserve, which rounds up by at most 330 bytes
    for network, found in zip(RESERVES, kept, strict=True):
        assert 0 <= found - RESERVES[network] <= 330, network


def test_dropout_takes_states_once_for_the_card(virtual):
    first, second = eval(
        virtual(
            TRAIN
            + """
network = nn.LSTM(40, 64, 3, dropout=0.3).cuda()
x = torch.zeros(50, 8, 40)
print((train(network, x), train(network, x)))
""",
            gpu="a100-80gb",
        )
        .check()
        .stdout
    )

    # THEN 24 bytes for each of 108 x 2048 threads and 256 more
    assert first - second == 24 * (108 * 2048 + 256)


OTHERS = {
    "nn.LSTM(40, 64, 2, proj_size=48, bidirectional=True)": "torch.zeros(50, 8, 40)",
    "nn.GRU(40, 64, 2, batch_first=True)": "torch.zeros(8, 50, 40)",
    "nn.LSTM(40, 64, 2)": "nn.utils.rnn.pack_padded_sequence(torch.zeros(50, 4, 40), [50, 40, 30, 20])",
    "nn.LSTM(40, 64, 2).bfloat16()": "torch.zeros(50, 8, 40, dtype=torch.bfloat16)",
}


def test_other_networks_train(virtual):
    lines = "".join(f"print(train(({network}).cuda(), {x}))\n" for network, x in OTHERS.items())
    ran = virtual(TRAIN + lines).check()

    # THEN a packed sequence keeps only its 140 tokens of 200, and bfloat16 half of float32
    projected, gru, packed, brain = map(int, ran.stdout.split())
    assert projected > 0
    assert 0 <= gru - (13 * 50 + 2) * 8 * 64 * 4 <= 330
    assert 0 <= packed - (11 * 140 + 2 * 2 * 4) * 64 * 4 <= 330
    # (and a copy of its weights, which torch does not flatten: torch.backends.cudnn.CUDNN_TENSOR_DTYPES)
    weights = 4 * 64 * (40 + 64 + 64 + 64 + 2 * 2)
    assert 0 <= brain - (11 * 50 + 2 * 2) * 8 * 64 * 2 - weights * 2 <= 330
    # AND the work space is said to be modelled, once
    (note,) = (entry for entry in ran.of("modelled") if entry["what"] == "cuDNN RNN work space")
    assert note["bytes"] > 0


def test_flattened_weights_stay_flat(virtual):
    ran = virtual(
        TRAIN
        + """
network = nn.LSTM(40, 64, 2, bidirectional=True).cuda()
train(network, torch.zeros(50, 8, 40))
print(len({p.untyped_storage().data_ptr() for p in network.parameters()}))
print(network.weight_ih_l0.untyped_storage().nbytes())
"""
    ).check()

    # THEN all 16 parameters are views of one weight space, and torch has no reason to warn
    assert ran.stdout.split() == ["1", "614400"]
    assert "contiguous chunk" not in ran.stderr


def test_inference_keeps_no_reserve(virtual):
    kept = int(
        virtual("""
import torch
network = torch.nn.LSTM(40, 64, 2).cuda().eval()
x = torch.zeros(50, 8, 40, device="cuda")
with torch.no_grad():
    network(x)
    before = torch.cuda.memory_allocated()
    y = network(x)[0]
    print(torch.cuda.memory_allocated() - before)
""")
        .check()
        .stdout
    )

    assert kept == 50 * 8 * 64 * 4
