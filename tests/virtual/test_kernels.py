"""Kernels by threads: what one thread finds out about a library's code, no other sees half of."""

from __future__ import annotations

import os
import subprocess

from vramscope.cards import find_card
from vramscope.virtual import build
from vramscope.virtual.wheel import find_wheel

# A fat binary whose only fitting entry is the last of many, and threads that all want it first.
PROGRAM = r"""
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { ENTRIES = 400000, HEADER = 64, THREADS = 8, MODULES = 5 };
struct wrapper { uint32_t magic, version; const void *container; void *rest; };
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, uint3 *, uint3 *, dim3 *, dim3 *, int *);
static char kernels[MODULES];
static pthread_barrier_t start;
static int refused;
static void *launch(void *kernel)
{
    pthread_barrier_wait(&start);
    if (cudaLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL)) __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
    return NULL;
}
int main(void)
{
    char *container = calloc(1, 16 + (size_t)ENTRIES * HEADER);
    *(uint32_t *)container = 0xBA55ED50;
    *(uint16_t *)(container + 6) = 16;
    *(uint64_t *)(container + 8) = (uint64_t)ENTRIES * HEADER;
    for (int i = 0; i < ENTRIES; i++) {
        char *entry = container + 16 + (size_t)i * HEADER;
        *(uint16_t *)entry = 2;
        *(uint32_t *)(entry + 4) = HEADER;
        *(uint32_t *)(entry + 28) = i + 1 < ENTRIES ? 90 : 86;
    }
    struct wrapper wrapper = {0x466243B1, 1, container, NULL};
    pthread_barrier_init(&start, NULL, THREADS);
    for (int m = 0; m < MODULES; m++) {
        __cudaRegisterFunction(__cudaRegisterFatBinary(&wrapper), &kernels[m], NULL, "kernel", -1, NULL, NULL, NULL, NULL, NULL);
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, launch, &kernels[m]);
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    }
    printf("%d refused\n", refused);
    return 0;
}
"""


def test_threads_that_want_a_kernel_at_the_same_time_all_get_it(tmp_path):
    wheel = find_wheel()
    stand_ins = build.ensure_built(wheel)
    libraries = [str(stand_ins.folder / build.FILE_NAME.format(name)) for name in ("cudart", "core")]
    flags = [flag for flag in build._Build(tmp_path, wheel, "cc").flags if flag.startswith(("-I", "-isystem"))]
    program = tmp_path / "threads"
    subprocess.run(
        ["cc", "-w", "-xc", "-", *flags, "-xnone", *libraries, "-lpthread", "-o", str(program)],
        input=PROGRAM, text=True, check=True,
    )  # fmt: skip

    # Preloaded, as always: by its soname the loader might find a real libcudart on the machine.
    environment = {**os.environ, "LD_PRELOAD": ":".join(libraries), "VRAMSCOPE_CARD": find_card("rtx-3090").to_native(2**28)}
    ran = subprocess.run([str(program)], env=environment, capture_output=True, text=True, check=True)

    assert ran.stdout == "0 refused\n"
