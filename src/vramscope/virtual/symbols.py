"""Which symbols each stand-in must have, and what those without a body of their own answer.

The lists come from the installed libraries themselves (``nm``), so that nothing is tied to one
version; for the driver, whose library comes with a GPU, from the wheel's ``cuda.h``.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vramscope.errors import BuildError


@dataclass(frozen=True, slots=True)
class Policy:
    """What a library's stubs answer.

    `computes` succeed and count as a kernel; `quiet` succeed; all others are journalled when
    first called and answer `refusal`, the library's own code for "not supported".  With `plain`
    that is not journalled: a real card answers so too.
    """

    refusal: int
    computes: str = ""
    quiet: str = ""
    plain: bool = False


POLICIES = {
    # cudaErrorNotSupported, CUDA_ERROR_NOT_SUPPORTED: driver_types.h, cuda.h
    "cudart": Policy(801, quiet=r"cudaCtxResetPersistingL2Cache|cudaMemRangeGetAttribute"),
    "cuda": Policy(801),
    # CUBLAS_STATUS_NOT_SUPPORTED: cublas_api.h.  Every routine begins with its type or its kind.
    "cublas": Policy(
        15,
        computes=r"cublas(I[sdcz]am\w*|[SDCZ]\w*|(Gemm|Dot|Scal|Axpy|Nrm2|Rot|Asum|Copy|Swap|Iamax|Iamin|Cherk|Csyrk|Uint8)\w*)",
        quiet=r"cublas(SetLogger|Logger|SetWorkspace|SetEmulation|SetFixedPoint)\w*",
    ),
    "cublaslt": Policy(
        15, computes=r"cublasLt(Matmul|MatrixTransform)$", quiet=r"cublasLt\w*(Set|Destroy|Logger)\w*"
    ),
    # CUDNN_STATUS_NOT_SUPPORTED: cudnn_graph.h
    "cudnn": Policy(3000, quiet=r"cudnn(Set|Destroy)\w*"),
    # CUFFT_NOT_SUPPORTED, CUSOLVER_STATUS_NOT_SUPPORTED, CUSPARSE_STATUS_NOT_SUPPORTED:
    # cufft.h, cusolver_common.h, cusparse.h
    "cufft": Policy(16, quiet=r"cufft(Set|Reset)PlanProperty(Int64)?"),
    # Only what has a size or needs none: other routines would be called with work space that nobody sized.
    "cusolver": Policy(
        9,
        computes=r"cusolverDn(X|[SDCZ])(potr[fs]|getr[fs]|geqrf|(or|un)(gqr|mqr)|(sy|he)(ev|evd|evj|trf|trs)|geev|gesvd[ja]?)"
        r"(StridedBatched|Batched)?",
        quiet=r"cusolverDn(X(gesvdj|syevj))?Set\w*",
    ),
    "cusparse": Policy(
        10,
        computes=r"cusparse(Sp(MM|MV)(_preprocess)?|SDDMM(_preprocess)?|SpGEMM_copy|Sp(SV|SM)_(analysis|solve|updateMatrix)"
        r"|[SDCZ](bsrm[mv]|bsrs[mv]2_(analysis|solve)|csrgeam2)"
        r"|X(coo2csr|csr2coo|coosortBy(Row|Column)|csrsort)|CreateIdentityPermutation)",
        quiet=r"cusparse((Csr|Csc|Coo)?Set|(Dn|Sp)(Mat|Vec)Set)\w*",
    ),
    # CUSPARSE_STATUS_NOT_SUPPORTED here as well: cusparseLt.h
    "cusparselt": Policy(
        10,
        computes=r"cusparseLt(Matmul|MatmulSearch|SpMMA(Compress|Prune)2?)",
        quiet=r"cusparseLt(Destroy|Mat\w*(Destroy|SetAttribute)|Matmul(Descriptor|AlgSelection|Plan)Init)",
    ),
    "curand": Policy(
        204, quiet=r"curandSet\w*"
    ),  # CURAND_STATUS_ARCH_MISMATCH, as curand.h has no "not supported"
    # CUPTI_SUCCESS for everything: a profiler that sees nothing is not an error
    "cupti": Policy(0, quiet=r".*"),
    "nccl": Policy(
        5, quiet=r"nccl\w*(Destroy|Deregister|Finalize|Suspend|Resume|Revoke|GroupSimulateEnd)\w*"
    ),  # ncclInvalidUsage: nccl.h
    "nvml": Policy(3, plain=True),  # NVML_ERROR_NOT_SUPPORTED: nvidia-ml-py, pynvml.py
}


def exported(library: Path) -> tuple[list[str], str]:
    """The functions that a library exports, and their version node ("" if they carry none)."""
    names, node = [], ""
    for line in _nm("-D", "--defined-only", "--with-symbol-versions", str(library)).splitlines():
        kind, symbol = line.split()[-2:]
        if kind not in "TWi":
            continue
        name, _, version = symbol.partition("@")
        names.append(name)
        node = node or version.lstrip("@")
    return sorted(n for n in set(names) if re.fullmatch(r"[A-Za-z_]\w*", n) and not n.startswith("_Z")), node


def defined(objects: Iterable[Path]) -> set[str]:
    """The functions that compiled objects define; macros of the headers have renamed some of them."""
    text = _nm("--defined-only", *map(str, objects))
    return {line.split()[-1] for line in text.splitlines() if " T " in line}


def wanted(library: Path) -> dict[str, set[str]]:
    """The undefined symbols of a library, by version node ("" where they carry none)."""
    found: dict[str, set[str]] = {}
    for line in _nm("-D", "--undefined-only", str(library)).splitlines():
        name, _, node = line.split()[-1].partition("@")
        found.setdefault(node.lstrip("@"), set()).add(name)
    return found


# Through it a CUDA runtime linked into another library would find a driver without its
# private tables; without it that runtime reports that there is none (see cuda.c).
_LEFT_OUT = {"cuGetProcAddress", "cuGetProcAddress_v2"}


def driver_functions(preprocessed_header: str) -> list[str]:
    """Every driver function of a preprocessed ``cuda.h`` (so under its versioned name), but for one."""
    names = set(re.findall(r"\bCUresult\s+(cu[A-Z]\w*)\s*\(", preprocessed_header))
    return sorted(names - _LEFT_OUT)


def driver_aliases(names: set[str]) -> dict[str, str]:
    """Unversioned driver names that are missing, and the newest version that stands for each.

    The real driver exports them for old binaries; who looks functions up by name (cuDNN's runtime
    compiler, for Hopper and Blackwell) still asks for some of them.
    """
    versioned = sorted(name for name in names if re.search(r"_v\d+$", name))
    return {plain: name for name in versioned if (plain := re.sub(r"_v\d+$", "", name)) not in names}


def stub_source(library: str, names: Iterable[str]) -> str:
    """C source of the stubs of a library."""
    policy = POLICIES[library]
    lines = [
        "#include <stddef.h>",
        "void vs_kernel_launched(void);",
        "long vs_unsimulated(const char *, const char *, int *, long);",
    ]
    lines += [_stub(library, policy, name) for name in names]
    return "\n".join(lines) + "\n"


def refused(library: str, names: Iterable[str]) -> list[str]:
    """Those of a library's stubs that answer "not supported"."""
    return [name for name in names if _kind(POLICIES[library], name) == "refused"]


def _kind(policy: Policy, name: str) -> str:
    if name.endswith(("ErrorString", "ErrorName", "StatusString", "StatusName")):
        return "text"
    if policy.computes and re.fullmatch(policy.computes, name):
        return "computes"
    if policy.quiet and re.fullmatch(policy.quiet, name):
        return "quiet"
    return "refused"


def _stub(library: str, policy: Policy, name: str) -> str:
    kind = _kind(policy, name)
    if kind == "text":
        return f'const char *{name}(void) {{ return "not simulated"; }}'
    if kind == "computes":
        return f"long {name}(void) {{ vs_kernel_launched(); return 0; }}"
    if kind == "quiet" or policy.plain:
        return f"long {name}(void) {{ return {0 if kind == 'quiet' else policy.refusal}; }}"
    call = f'vs_unsimulated("{library}", "{name}", &seen, {policy.refusal})'
    return f"long {name}(void) {{ static int seen; return {call}; }}"


def _nm(*arguments: str) -> str:
    try:
        done = subprocess.run(["nm", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BuildError(
            "`nm` is missing; it comes with the C compiler: try `apt install gcc` or set PATH"
        ) from None
    if done.returncode:
        raise BuildError(f"`nm {arguments[-1]}` failed: {done.stderr.strip()}")
    return done.stdout
