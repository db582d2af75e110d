"""torch.fft, torch.linalg and torch.sparse on a virtual card: they run and say what is invented."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from vramscope.virtual.wheel import find_wheel

pytestmark = pytest.mark.virtual

PRELUDE = """
import ctypes, json, torch, warnings
warnings.simplefilter("ignore")
core, outcome = ctypes.CDLL(None), {}
core.vs_used_bytes.restype = ctypes.c_uint64

def leaf(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=True)

def total(outputs):
    parts = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    reals = [torch.view_as_real(p.resolve_conj()) if p.is_complex() else p for p in parts if p.requires_grad]
    return sum(part.sum() for part in reals)

def run(name, function, *inputs, backward=True):
    try:
        outputs = function(*inputs)
        if backward:
            total(outputs).backward()
            torch.cuda.synchronize()
            for given in inputs:
                assert given.grad.shape == given.shape
        first = outputs if isinstance(outputs, torch.Tensor) else outputs[0]
        outcome[name] = list(first.shape)
    except Exception as error:
        outcome[name] = f"{type(error).__name__}: {error}"
"""
PRINT = "\nprint(json.dumps(outcome))"


# What torch reads of the results (`info`, say) is another matter: here what is not known is false.
LIBRARIES_ALONE = "bool=false"


def outcome(ran) -> dict[str, object]:
    return json.loads(ran.check().stdout.splitlines()[-1])


def uncounted(ran) -> dict[str, object]:
    return {str(entry["what"]): entry["bytes"] for entry in ran.of("uncounted")}


# ---- torch.fft ---------------------------------------------------------------------------------

FFT = """
F, c64 = torch.fft, torch.complex64
run("fft", F.fft, leaf(4, 1000, dtype=c64))
run("ifft", F.ifft, leaf(4, 1000, dtype=c64))
run("rfft", F.rfft, leaf(4, 1000))
run("irfft", F.irfft, leaf(4, 501, dtype=c64))
run("fft2", F.fft2, leaf(4, 64, 64, dtype=c64))
run("rfftn", lambda x: F.rfftn(x, dim=(1, 2, 3)), leaf(2, 3, 16, 16, dtype=torch.float64))
run("fftn of five", F.fftn, leaf(2, 3, 4, 16, 16, dtype=c64))
run("half", F.rfft, leaf(4, 1024, dtype=torch.float16))
window = torch.hann_window(400, device="cuda")
run("stft", lambda x: torch.stft(x, 400, 160, window=window, return_complex=True), leaf(2, 16000))
run("absolute", lambda x: F.fft(x).abs(), leaf(4, 1000))
"""


def test_transforms_run_forward_and_backward(virtual):
    ran = virtual(PRELUDE + FFT + PRINT)
    assert outcome(ran) == {
        "fft": [4, 1000],
        "ifft": [4, 1000],
        "rfft": [4, 501],
        "irfft": [4, 1000],
        "fft2": [4, 64, 64],
        "rfftn": [2, 3, 16, 9],
        "fftn of five": [2, 3, 4, 16, 16],
        "half": [4, 513],
        "stft": [2, 201, 101],
        "absolute": [4, 1000],
    }
    assert ran.of("unsimulated") == []


WORK_AREA = """
x = torch.randn({shape}, device="cuda", dtype=torch.{dtype})
torch.cuda.reset_peak_memory_stats()
before = torch.cuda.memory_allocated()
y = torch.fft.{transform}(x)
outcome["work"] = torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()
outcome["kept"] = torch.cuda.memory_allocated() - before
"""


@pytest.mark.parametrize(
    ("transform", "shape", "dtype", "kept", "what", "work"),
    [
        # One copy of the data: 64 MiB for 32 of 512x512, as JuliaGPU/CUDA.jl issue 894 measured.
        ("fft2", "32, 512, 512", "complex64", 64 << 20, "cuFFT work area", 64 << 20),
        # The half spectrum of an even length, the whole of an odd one.
        ("rfft", "64, 4096", "float32", 64 * 2049 * 8, "cuFFT work area", 64 * 2049 * 8),
        ("rfft", "64, 4095", "float32", 64 * 2048 * 8, "cuFFT work area", 64 * 4095 * 8),
        # 1009 is prime: two buffers of 2048 points for each line.
        ("fft", "64, 1009", "complex64", 64 * 1009 * 8, "cuFFT work area, Bluestein", 64 * 2 * 2048 * 8),
        # 127 is the largest prime that is not.
        ("fft", "64, 127", "complex64", 64 * 127 * 8, "cuFFT work area", 64 * 127 * 8),
    ],
)
def test_a_transform_takes_a_work_area_that_is_modelled(virtual, transform, shape, dtype, kept, what, work):
    ran = virtual(PRELUDE + WORK_AREA.format(transform=transform, shape=shape, dtype=dtype) + PRINT)
    assert outcome(ran) == {"work": _rounded(work), "kept": _rounded(kept)}
    assert uncounted(ran) == {what: work}


def _rounded(size: int) -> int:
    """As torch hands it out: in units of 512 bytes (kMinBlockSize, c10/core/AllocatorConfig.h)."""
    return -(-size // 512) * 512


PLANS_THAT_ALLOCATE = """
torch.zeros(1, device="cuda")
fft, plan, before = ctypes.CDLL("{cufft}"), ctypes.c_int(), core.vs_used_bytes(0)
outcome["made"] = fft.cufftPlan1d(ctypes.byref(plan), 1 << 20, 0x29, 4)
outcome["taken"] = core.vs_used_bytes(0) - before
outcome["gone"] = fft.cufftDestroy(plan)
outcome["left"] = core.vs_used_bytes(0) - before
outcome["again"] = fft.cufftDestroy(plan)
"""


def test_a_plan_that_is_not_told_otherwise_takes_its_work_area_from_the_card(virtual):
    library = find_wheel().libraries["cufft"].name
    ran = virtual(PRELUDE + PLANS_THAT_ALLOCATE.format(cufft=library) + PRINT)
    invalid_plan = 1
    assert outcome(ran) == {"made": 0, "taken": 32 << 20, "gone": 0, "left": 0, "again": invalid_plan}


# ---- torch.linalg ------------------------------------------------------------------------------

LINALG = """
L, shape = torch.linalg, {shape}
def square(): return leaf(*shape)
def right(): return leaf(*shape[:-1], 5)
run("cholesky", L.cholesky, square())
run("cholesky_solve", torch.cholesky_solve, right(), square())
run("qr", L.qr, square())
run("svd", lambda a: L.svd(a, full_matrices=False), square())
run("svdvals", L.svdvals, square())
run("eigh", L.eigh, square())
run("eigvalsh", L.eigvalsh, square())
run("inv", L.inv, square())
run("solve", L.solve, square(), right())
run("lu", lambda a: L.lu(a)[1:], square())
run("det", L.det, square())
run("slogdet", lambda a: L.slogdet(a)[1], square())
run("lstsq", lambda a, b: L.lstsq(a, b).solution, square(), right())
run("pinv", L.pinv, square())
run("solve_triangular", lambda a, b: L.solve_triangular(a, b, upper=True), square(), right())
run("householder_product", lambda a, tau: L.householder_product(a, tau), square(), leaf(*shape[:-1]))
run("matrix_rank", L.matrix_rank, square(), backward=False)
run("ldl_solve", lambda a, b: L.ldl_solve(*L.ldl_factor(a), b), square(), right(), backward=False)
run("eigvals", L.eigvals, square())
"""


@pytest.mark.parametrize(
    ("shape", "routines"),
    [
        ((64, 64), {"potrf", "getrf", "geqrf", "orgqr", "sytrf", "syevBatched", "geev"}),
        # Batches go to batched routines, of cuBLAS too; its own need no work space of torch.
        ((3, 16, 16), {"gesvdjBatched", "syevBatched", "geev"}),
        ((2, 600, 600), {"geqrf", "syevBatched", "geev"}),
    ],
)
def test_factorizations_run_forward_and_backward(virtual, shape, routines):
    ran = virtual(PRELUDE + LINALG.format(shape=shape) + PRINT, assume=LIBRARIES_ALONE)
    square, right, values, batch = list(shape), [*shape[:-1], 5], list(shape[:-1]), list(shape[:-2])
    assert outcome(ran) == {
        **dict.fromkeys(("cholesky", "qr", "svd", "inv", "lu", "pinv", "householder_product"), square),
        **dict.fromkeys(("cholesky_solve", "solve", "lstsq", "solve_triangular", "ldl_solve"), right),
        **dict.fromkeys(("svdvals", "eigh", "eigvalsh", "eigvals"), values),
        **dict.fromkeys(("det", "slogdet", "matrix_rank"), batch),
    }
    assert ran.of("unsimulated") == []
    assert {f"cuSOLVER {routine} work space" for routine in routines} <= uncounted(ran).keys()


DRIVERS = """
L = torch.linalg
run("gesvd", lambda a: L.svd(a, full_matrices=False, driver="gesvd"), leaf(100, 200))
run("gesvdj", lambda a: L.svd(a, full_matrices=False, driver="gesvdj"), leaf(200, 100))
run("gesvda", lambda a: L.svd(a, full_matrices=False, driver="gesvda"), leaf(4, 1000, 20))
run("complex", lambda a: L.qr(a), leaf(64, 64, dtype=torch.complex128))
run("complex eigenvalues", L.eigvalsh, leaf(64, 64, dtype=torch.complex64))
torch.backends.cuda.preferred_linalg_library("magma")
run("magma", L.qr, leaf(64, 64))
"""


def test_every_driver_runs(virtual):
    ran = virtual(PRELUDE + DRIVERS + PRINT, assume=LIBRARIES_ALONE)
    expected = {"gesvd": [100, 100], "gesvdj": [200, 100], "gesvda": [4, 1000, 20], "complex": [64, 64]}
    assert outcome(ran) == expected | {"complex eigenvalues": [64], "magma": [64, 64]}
    assert ran.of("unsimulated") == []


CHECKS = """
run("cholesky", torch.linalg.cholesky, leaf(64, 64))
run("inv", torch.linalg.inv, leaf(3, 16, 16))
window = torch.hann_window(400, device="cuda")
run("istft", lambda x: torch.istft(x, 400, 160, window=window), leaf(2, 201, 101, dtype=torch.complex64))
"""


def test_torch_finds_its_checks_of_the_results_passed(virtual):
    found = outcome(virtual(PRELUDE + CHECKS + PRINT))
    assert found == {"cholesky": [64, 64], "inv": [3, 16, 16], "istft": [2, 16000]}


HANDLES = """
solver, handles = ctypes.CDLL("{cusolver}"), [ctypes.c_void_p(), ctypes.c_void_p()]
for handle in handles:
    solver.cusolverDnCreate(ctypes.byref(handle))
outcome["differ"] = handles[0].value != handles[1].value
size = ctypes.c_int(-1)
no = None
def gesvdj(n):
    rest = (no, n, no, no, n, no, n, ctypes.byref(size), no)
    return solver.cusolverDnSgesvdj_bufferSize(handles[0], 1, 1, n, n, *rest)
outcome["largest"] = gesvdj(30000)
outcome["beyond an int"] = gesvdj(40000)
"""


def test_handles_differ_and_a_size_beyond_an_int_is_refused(virtual):
    ran = virtual(PRELUDE + HANDLES.replace("{cusolver}", find_wheel().libraries["cusolver"].name) + PRINT)
    invalid_value = 3  # CUSOLVER_STATUS_INVALID_VALUE
    assert outcome(ran) == {"differ": True, "largest": 0, "beyond an int": invalid_value}


# ---- the rules that the installed libraries themselves go by --------------------------------------

ASK_SOLVER = """
def ask(library):
    size, no, info = ctypes.c_int(-1), None, ctypes.c_void_p()
    library.cusolverDnCreateGesvdjInfo(ctypes.byref(info))
    for m, n in [(1, 1), (16, 16), (31, 31), (33, 33), (65, 65), (200, 200), (1024, 1024), (4000, 4000),
                 (201, 100), (1500, 1000), (1000, 1001), (512, 128), (10000, 20), (64, 2000)]:
        for t in "SZ":
            call = getattr(library, f"cusolverDn{t}gesvdj_bufferSize")
            code = call(blank, 1, 1, m, n, no, m, no, no, m, no, n, ctypes.byref(size), info)
            yield f"{t} {m}x{n}", code, size.value
"""
ASK_SPARSE = """
def ask(library):
    long, word, some = ctypes.c_size_t(0), ctypes.c_int(0), ctypes.c_void_p(4096)
    descriptor, solve, solves = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    library.cusparseCreateMatDescr(ctypes.byref(descriptor))
    library.cusparseCreateBsrsv2Info(ctypes.byref(solve))
    library.cusparseCreateBsrsm2Info(ctypes.byref(solves))
    for entries in (1, 100, 1000, 4096, 50000, 10**6, 10**7):
        for sort in ("coosort", "csrsort"):
            call = getattr(library, f"cusparseX{sort}_bufferSizeExt")
            code = call(blank, 1000, 800, entries, some, some, ctypes.byref(long))
            yield f"{sort} {entries}", code, long.value
    for rows in (10, 1000, 10**6):
        code = library.cusparseScsrgeam2_bufferSizeExt(
            blank, rows, 800, some, descriptor, 50, some, some, some, some, descriptor, 40, some, some, some,
            descriptor, some, some, some, ctypes.byref(long))
        yield f"csrgeam2 {rows}", code, long.value
    for rows in (100, 1000):
        for t in "SDZ":
            vector, matrix = (getattr(library, f"cusparse{t}bsrs{k}2_bufferSize") for k in "vm")
            blocks, size = (1000, descriptor, some, some, some, 4), ctypes.byref(word)
            code = vector(blank, 0, 0, rows, *blocks, solve, size)
            yield f"bsrsv2 {t} {rows}", code, word.value
            code = matrix(blank, 0, 0, 0, rows, 64, *blocks, solves, size)
            yield f"bsrsm2 {t} {rows}", code, word.value
"""
ASK = """
import ctypes, json, sys
blank = ctypes.cast((ctypes.c_char * 262144)(), ctypes.c_void_p)
{questions}
print(json.dumps({{name: [code, size] for name, code, size in ask(ctypes.CDLL("{library}"))}}))
"""


@pytest.mark.parametrize(
    ("library", "questions", "least", "slack"),
    [
        # gesvdj counts elements; the rule is good to a hundredth, or 64 elements of the smallest.
        ("cusolver", ASK_SOLVER, 64, 0.01),
        # cuSPARSE counts bytes; the rules are good to two of its units of 128.
        ("cusparse", ASK_SPARSE, 256, 0.0),
    ],
)
def test_sizes_are_the_installed_librarys_own(virtual, library, questions, least, slack):
    real = find_wheel().libraries[library]
    theirs = _ask_without_a_device(ASK.format(questions=questions, library=real))
    ours = outcome(virtual(ASK.format(questions=questions, library=real.name)))
    assert ours.keys() == theirs.keys()
    for name, (code, size) in theirs.items():
        assert ours[name][0] == code == 0, name
        assert abs(ours[name][1] - size) <= max(least, slack * size), (name, ours[name], size)


def _ask_without_a_device(code: str) -> dict[str, list[int]]:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode < 0:
        pytest.skip(f"this library wants a device for these sizes (signal {-done.returncode})")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


# ---- torch.sparse ------------------------------------------------------------------------------

SPARSE = """
def indices(*values): return torch.tensor(values, device="cuda")
def csr(dtype=torch.float32):
    rows, columns = torch.arange(0, 65, device="cuda") * 4, torch.zeros(256, dtype=torch.int64, device="cuda")
    values = torch.randn(256, device="cuda", dtype=dtype)
    return torch.sparse_csr_tensor(rows, columns, values, (64, 64), requires_grad=True)
def coo():
    places = torch.zeros(2, 256, dtype=torch.int64, device="cuda")
    values = torch.randn(256, device="cuda")
    return torch.sparse_coo_tensor(places, values, (64, 64), requires_grad=True, is_coalesced=True)
def bsr():
    rows, columns = torch.arange(0, 17, device="cuda"), torch.zeros(16, dtype=torch.int64, device="cuda")
    return torch.sparse_bsr_tensor(rows, columns, torch.randn(16, 4, 4, device="cuda"), (64, 64))
zeros = torch.zeros(64, 32, device="cuda")
run("csr @ dense", torch.matmul, csr(), leaf(64, 32))
run("coo @ dense", torch.matmul, coo(), leaf(64, 32))
run("sparse.mm", torch.sparse.mm, coo(), leaf(64, 32))
run("sparse.addmm", lambda a, b: torch.sparse.addmm(zeros, a, b), coo(), leaf(64, 32))
run("csr addmm", lambda a, b: torch.addmm(zeros, a, b), csr(), leaf(64, 32))
run("csr @ vector", torch.matmul, csr(), leaf(64))
run("coo to dense", lambda a: a.to_dense(), coo())
run("csr to dense", lambda a: a.to_dense(), csr())
run("half", lambda a: a @ leaf(64, 32, dtype=torch.float16), csr(torch.float16), backward=False)
run("bsr @ dense", torch.matmul, bsr(), leaf(64, 32), backward=False)
run("coo to csr", lambda a: a.to_sparse_csr(), coo(), backward=False)
run("csr to coo", lambda a: a.to_sparse(), csr(), backward=False)
def sampled(a, b): return torch.sparse.sampled_addmm(a, b, b.t())
run("sampled_addmm", sampled, csr(), leaf(64, 32), backward=False)
for name, matrix in (("csr", csr().detach()), ("bsr", bsr())):
    for columns in (1, 5):
        solve = lambda b: torch.triangular_solve(b, matrix)[0]
        run(f"{name} triangular {columns}", solve, leaf(64, columns), backward=False)
"""


def test_sparse_products_run_forward_and_backward(virtual):
    ran = virtual(PRELUDE + SPARSE + PRINT)
    dense, square = [64, 32], [64, 64]
    assert outcome(ran) == {
        **dict.fromkeys(("csr @ dense", "coo @ dense", "bsr @ dense", "half"), dense),
        **dict.fromkeys(("sparse.mm", "sparse.addmm", "csr addmm"), dense),
        **dict.fromkeys(("coo to dense", "csr to dense", "coo to csr", "csr to coo"), square),
        "sampled_addmm": square,
        "csr @ vector": [64],
        **{f"{name} triangular {columns}": [64, columns] for name in ("csr", "bsr") for columns in (1, 5)},
    }
    assert ran.of("unsimulated") == []
    assert {"cuSPARSE SpMM buffer", "cuSPARSE SpSM buffer"} <= uncounted(ran).keys()


SPARSE_RESULTS = """
a = csr().detach()
outcome["product"], outcome["sum"] = (a @ a)._nnz(), (a + csr().detach())._nnz()
"""


def test_a_sparse_result_has_the_entries_of_terms_that_never_meet(virtual):
    definitions = SPARSE[: SPARSE.index("zeros =")]
    ran = virtual(PRELUDE + definitions + SPARSE_RESULTS + PRINT)
    assert outcome(ran) == {"product": 256 * 256 // 64, "sum": 512}
    assert uncounted(ran)["cuSPARSE SpGEMM result"] == 1024 * (4 + 4)
    assert "cuSPARSE csrgeam2 result" in uncounted(ran)


SEMI_STRUCTURED = """
from torch.sparse import SparseSemiStructuredTensor, to_sparse_semi_structured
def pruned(cutlass):
    SparseSemiStructuredTensor._FORCE_CUTLASS = cutlass
    return to_sparse_semi_structured(torch.tensor([0, 0, 1, 1], device="cuda", dtype=half).tile((256, 64)))
half, linear = torch.float16, torch.nn.functional.linear
run("cutlass", lambda x: linear(x, pruned(True)), leaf(128, 256, dtype=half), backward=False)
run("cusparselt", lambda x: linear(x, pruned(False)), leaf(128, 256, dtype=half), backward=False)
ones = torch.ones(256, 256, device="cuda", dtype=torch.int8)
run("compressed", lambda: torch._cslt_compress(ones), backward=False)
compressed = torch._cslt_compress(ones)
run("search", lambda: torch.tensor(torch._cslt_sparse_mm_search(compressed, ones)), backward=False)
"""


def test_two_in_four_sparse_products_run_on_both_backends(virtual):
    ran = virtual(PRELUDE + SEMI_STRUCTURED + PRINT, "a100-80gb")
    products = {"cutlass": [128, 256], "cusparselt": [128, 256]}
    assert outcome(ran) == products | {"compressed": [256, 256 * 10 // 16], "search": []}
    assert ran.of("unsimulated") == []
    assert uncounted(ran) == {"cuSPARSELt compression buffer": None, "cuSPARSELt work space": None}


def test_a_card_without_sparse_tensor_cores_refuses(virtual):
    ran = virtual(PRELUDE + 'torch._cslt_compress(torch.ones(64, 64, device="cuda").half())', "t4")
    assert ran.returncode == 1
    assert "architecture mismatch" in ran.stderr


# ---- what is not simulated, and versions -----------------------------------------------------------

REFUSED = """
for library, call in {calls}.items():
    outcome[call] = getattr(ctypes.CDLL(library), call)(0, 0, 0, 0)
"""


def test_a_call_that_is_not_simulated_says_its_name(virtual):
    libraries = find_wheel().libraries
    calls = {
        "cufft": "cufftXtMalloc",
        "cusolver": "cusolverSpCreate",
        "cusparse": "cusparseSparseToDense_bufferSize",
    }
    by_file = {libraries[name].name: call for name, call in calls.items()}
    ran = virtual(PRELUDE + REFUSED.format(calls=by_file) + PRINT)
    codes = {"cufftXtMalloc": 16, "cusolverSpCreate": 9, "cusparseSparseToDense_bufferSize": 10}
    assert outcome(ran) == codes
    told = {(entry["library"], entry["symbol"], entry["answer"]) for entry in ran.of("unsimulated")}
    assert told == {(name, call, codes[call]) for name, call in calls.items()}


VERSIONS = """
value = ctypes.c_int()
for library, call, *first in {calls}:
    getattr(ctypes.CDLL(library), call)(*first, ctypes.byref(value))
    outcome[call] = value.value
"""


def test_versions_are_those_of_the_installed_headers(virtual):
    wheel = find_wheel()
    calls = [
        (wheel.libraries["cufft"].name, "cufftGetVersion"),
        (wheel.libraries["cusolver"].name, "cusolverGetVersion"),
        (wheel.libraries["cusparse"].name, "cusparseGetVersion", None),
        (wheel.libraries["curand"].name, "curandGetVersion"),
    ]
    found = outcome(virtual(PRELUDE + VERSIONS.format(calls=calls) + PRINT))
    assert found == {
        "cufftGetVersion": _version(wheel.includes, "cufft.h", "CUFFT"),
        "cusolverGetVersion": _version(wheel.includes, "cusolver_common.h", "CUSOLVER"),
        "cusparseGetVersion": _version(wheel.includes, "cusparse.h", "CUSPARSE"),
        "curandGetVersion": _version(wheel.includes, "curand.h", "CURAND"),
    }


def _version(folders: tuple[Path, ...], header: str, prefix: str) -> int:
    text = next(folder / header for folder in folders if (folder / header).is_file()).read_text()
    major, minor, patch = (
        int(re.search(rf"#\s*define {prefix}_VER_{part}\s+(\d+)", text)[1])
        for part in ("MAJOR", "MINOR", "PATCH")
    )
    return major * 1000 + minor * 100 + patch
