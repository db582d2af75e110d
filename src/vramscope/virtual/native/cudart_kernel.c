/* libcudart: kernels.  They do nothing, but what a card would refuse is refused:
 * a launch shape beyond its limits, and code that was not built for it. */
#define _GNU_SOURCE
#include "cudart.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The duration of a launch that nobody models: what one costs at least on a card. */
#define LAUNCH_SECONDS 4e-6

/* ---- the code that libraries register ---------------------------------------------------
 * A fat binary is a wrapper that points to a container with one entry per architecture.
 * The layout is that of the wheels' own .nv_fatbin sections (as cuobjdump shows them). */
struct fat_wrapper { uint32_t magic, version; const void *container; void *rest; };
struct fat_container { uint32_t magic; uint16_t version, header_bytes; uint64_t bytes; };
struct fat_entry { uint16_t kind, unused; uint32_t header_bytes; uint64_t padded_bytes; uint32_t skipped[3]; uint32_t architecture; };
enum { FAT_WRAPPER_MAGIC = 0x466243B1, FAT_CONTAINER_MAGIC = (int)0xBA55ED50, FAT_PTX = 1, FAT_ELF = 2 };

struct module { const struct fat_wrapper *wrapper; int elf, ptx; bool looked; };
struct kernel { const void *host; const char *name; struct module *module; int dynamic_shared_bytes; };
/* In chunks, which never move: another thread may hold a kernel while a library is loaded. */
#define CHUNK_KERNELS 32768
#define MOST_CHUNKS 128
static struct kernel *chunks[MOST_CHUNKS];
static size_t kernel_count;
static struct kernel **table;                 /* by host address, open addressing; built when first needed */
static size_t table_size, table_filled;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The entry that a card takes: the newest code of its own generation that is not newer
 * than it, else the newest PTX that is not (CUDA Programming Guide, "Binary Compatibility"). */
static void read_entries(const struct fat_wrapper *wrapper, int *elf, int *ptx)
{
    int card = vs_card()->major * 10 + vs_card()->minor;
    if (!wrapper || wrapper->magic != FAT_WRAPPER_MAGIC) return;
    const struct fat_container *container = wrapper->container;
    if (container->magic != (uint32_t)FAT_CONTAINER_MAGIC) return;
    const char *at = (const char *)container + container->header_bytes, *end = at + container->bytes;
    while (at + sizeof(struct fat_entry) <= end) {
        const struct fat_entry *entry = (const struct fat_entry *)at;
        int arch = (int)entry->architecture;
        if (entry->kind == FAT_ELF && arch / 10 == card / 10 && arch <= card && arch > *elf) *elf = arch;
        if (entry->kind == FAT_PTX && arch <= card && arch > *ptx) *ptx = arch;
        if (!entry->header_bytes) break;
        at += entry->header_bytes + entry->padded_bytes;
    }
}

/* Two threads may look at once and find the same; nobody may see "looked" before what was found. */
static void look_into(struct module *module)
{
    int elf = 0, ptx = 0;
    if (__atomic_load_n(&module->looked, __ATOMIC_ACQUIRE)) return;
    read_entries(module->wrapper, &elf, &ptx);
    __atomic_store_n(&module->elf, elf, __ATOMIC_RELAXED);
    __atomic_store_n(&module->ptx, ptx, __ATOMIC_RELAXED);
    __atomic_store_n(&module->looked, true, __ATOMIC_RELEASE);
}

static bool runs_here(struct module *module)
{
    if (!module) return true;                 /* loaded by the program itself, e.g. Triton's */
    look_into(module);
    return module->elf || module->ptx;
}

void **__cudaRegisterFatBinary(void *wrapper)
{
    struct module *module = calloc(1, sizeof *module);
    if (module) module->wrapper = wrapper;
    return (void **)module;
}
void __cudaRegisterFatBinaryEnd(void **module) { VS_UNUSED(module); }
void __cudaUnregisterFatBinary(void **module) { VS_UNUSED(module); }
char __cudaInitModule(void **module) { VS_UNUSED(module); return 1; }
void __cudaRegisterVar(void **module, char *host, char *address, const char *name, int external, size_t bytes, int constant, int global)
{
    VS_UNUSED(module); VS_UNUSED(host); VS_UNUSED(address); VS_UNUSED(name);
    VS_UNUSED(external); VS_UNUSED(bytes); VS_UNUSED(constant); VS_UNUSED(global);
}
void __cudaRegisterManagedVar(void **module, void **host, char *address, const char *name, int external, size_t bytes, int constant, int global)
{
    VS_UNUSED(module); VS_UNUSED(host); VS_UNUSED(address); VS_UNUSED(name);
    VS_UNUSED(external); VS_UNUSED(bytes); VS_UNUSED(constant); VS_UNUSED(global);
}
void __cudaInitManagedRuntime(void **module) { VS_UNUSED(module); }

static struct kernel *kernel_at(size_t i) { return &chunks[i / CHUNK_KERNELS][i % CHUNK_KERNELS]; }

/* Called some 24,000 times while torch is loaded: only notes. */
void __cudaRegisterFunction(void **module, const char *host, char *device, const char *name, int limit, uint3 *thread, uint3 *block,
                            dim3 *block_size, dim3 *grid_size, int *warp)
{
    VS_UNUSED(device); VS_UNUSED(limit); VS_UNUSED(thread); VS_UNUSED(block);
    VS_UNUSED(block_size); VS_UNUSED(grid_size); VS_UNUSED(warp);
    pthread_mutex_lock(&lock);
    size_t chunk = kernel_count / CHUNK_KERNELS;
    if (chunk < MOST_CHUNKS && !chunks[chunk]) chunks[chunk] = malloc(CHUNK_KERNELS * sizeof **chunks);
    if (chunk < MOST_CHUNKS && chunks[chunk]) {
        *kernel_at(kernel_count) = (struct kernel){host, name, (struct module *)module, 0};
        kernel_count++;
    }
    pthread_mutex_unlock(&lock);
}

static size_t slot_of(const void *host) { return ((uintptr_t)host >> 4) * UINT64_C(0x9E3779B97F4A7C15) & (table_size - 1); }

/* Enters kernels registered since the last look-up; starts anew where the table has become too full. */
static void fill_table(void)
{
    if (!table_filled || kernel_count * 2 > table_size) {
        size_t size = 1 << 16;
        while (size < kernel_count * 4) size *= 2;
        free(table);
        table = calloc(size, sizeof *table);
        table_size = table ? size : 0;
        table_filled = 0;
    }
    for (; table && table_filled < kernel_count; table_filled++) {
        size_t slot = slot_of(kernel_at(table_filled)->host);
        while (table[slot]) slot = (slot + 1) & (table_size - 1);
        table[slot] = kernel_at(table_filled);
    }
}

static struct kernel *kernel_of(const void *host)
{
    struct kernel *found = NULL;
    pthread_mutex_lock(&lock);
    if (table_filled != kernel_count) fill_table();
    for (size_t slot = slot_of(host); table && table[slot]; slot = (slot + 1) & (table_size - 1))
        if (table[slot]->host == host) { found = table[slot]; break; }
    pthread_mutex_unlock(&lock);
    return found;
}

/* ---- launches ------------------------------------------------------------------------------- */
cudaError_t vs_check_launch(dim3 grid, dim3 block, size_t shared_bytes)
{
    const struct vs_card *card = vs_card();
    bool grid_fits = grid.x && grid.y && grid.z && grid.x <= 2147483647u && grid.y <= 65535 && grid.z <= 65535;
    bool block_fits = block.x && block.y && block.z && block.x <= 1024 && block.y <= 1024 && block.z <= 64
        && (size_t)block.x * block.y * block.z <= 1024;
    if (!grid_fits || !block_fits) return cudaErrorInvalidConfiguration;
    return shared_bytes > (size_t)card->shared_per_block_optin_bytes ? cudaErrorInvalidValue : cudaSuccess;
}

static cudaError_t launch(const void *host, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream)
{
    VS_CONTEXT();
    struct kernel *kernel = kernel_of(host);
    if (kernel && !runs_here(kernel->module)) return vs_error(cudaErrorNoKernelImageForDevice);
    cudaError_t refused = vs_check_launch(grid, block, shared_bytes);
    if (refused) return vs_error(refused);
    vs_kernel_launched();
    vs_count_node(stream);
    vs_elapse(stream, LAUNCH_SECONDS);
    return cudaSuccess;
}

static __thread struct { dim3 grid, block; size_t shared_bytes; void *stream; } configuration;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void *stream)
{
    configuration.grid = grid;
    configuration.block = block;
    configuration.shared_bytes = shared_bytes;
    configuration.stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
    *grid = configuration.grid;
    *block = configuration.block;
    *shared_bytes = configuration.shared_bytes;
    *(void **)stream = configuration.stream;
    return cudaSuccess;
}

/* A kernel's handle is its host address: one table serves both ways to launch it. */
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host) { *kernel = (cudaKernel_t)host; return cudaSuccess; }

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, cudaStream_t stream)
{
    VS_UNUSED(arguments);
    return launch((const void *)kernel, grid, block, shared_bytes, stream);
}

cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, cudaStream_t stream)
{
    VS_UNUSED(arguments);
    return launch(host, grid, block, shared_bytes, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, cudaStream_t stream)
{
    VS_UNUSED(arguments);
    return launch(host, grid, block, shared_bytes, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *configured, const void *host, void **arguments)
{
    VS_UNUSED(arguments);
    return launch(host, configured->gridDim, configured->blockDim, configured->dynamicSmemBytes, configured->stream);
}

/* ---- what libraries ask about a kernel ---------------------------------------------------------
 * Registers per thread are not known without unpacking the code; 32 keeps occupancy
 * bound by threads and shared memory. */
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *host)
{
    struct kernel *kernel = kernel_of(host);
    struct module *module = kernel ? kernel->module : NULL;
    memset(attributes, 0, sizeof *attributes);
    if (module && !runs_here(module)) return vs_error(cudaErrorNoKernelImageForDevice);
    int card = vs_card()->major * 10 + vs_card()->minor;
    attributes->ptxVersion = module ? (module->elf ? module->elf : module->ptx) : card;
    attributes->binaryVersion = module && module->elf ? module->elf : card;
    attributes->maxThreadsPerBlock = 1024;
    attributes->numRegs = 32;
    attributes->maxDynamicSharedSizeBytes = kernel && kernel->dynamic_shared_bytes ? kernel->dynamic_shared_bytes : 48 << 10;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *host, enum cudaFuncAttribute attribute, int value)
{
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value > vs_card()->shared_per_block_optin_bytes) return vs_error(cudaErrorInvalidValue);
    struct kernel *kernel = kernel_of(host);
    if (kernel) kernel->dynamic_shared_bytes = value;
    return cudaSuccess;
}
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attribute, int value, int device)
{
    VS_UNUSED(device);
    return cudaFuncSetAttribute((const void *)kernel, attribute, value);
}
cudaError_t cudaFuncSetCacheConfig(const void *host, enum cudaFuncCache config) { VS_UNUSED(host); VS_UNUSED(config); return cudaSuccess; }

int vs_blocks_per_sm(int threads, size_t shared_bytes)
{
    const struct vs_card *card = vs_card();
    int by_threads = card->threads_per_sm / (threads > 0 ? threads : 1), blocks = card->blocks_per_sm;
    size_t per_block = shared_bytes + (size_t)card->shared_reserved_bytes;
    int by_shared = shared_bytes ? (int)((size_t)card->shared_per_sm_bytes / per_block) : blocks;
    if (by_threads < blocks) blocks = by_threads;
    return by_shared < blocks ? by_shared : blocks;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *host, int threads, size_t shared_bytes, unsigned flags)
{
    VS_UNUSED(host); VS_UNUSED(flags);
    *blocks = vs_blocks_per_sm(threads, shared_bytes);
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *host, int threads, size_t shared_bytes)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host, threads, shared_bytes, 0);
}
cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *host, const cudaLaunchConfig_t *configured)
{
    VS_UNUSED(host); VS_UNUSED(configured);
    *clusters = vs_card()->sms;
    return cudaSuccess;
}

/* ---- code that the program brings along ---------------------------------------------------------- */
cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *jit, void **jit_values, unsigned jit_count,
                                enum cudaLibraryOption *options, void **option_values, unsigned option_count)
{
    VS_UNUSED(code); VS_UNUSED(jit); VS_UNUSED(jit_values); VS_UNUSED(jit_count);
    VS_UNUSED(options); VS_UNUSED(option_values); VS_UNUSED(option_count);
    VS_CONTEXT();
    *library = (cudaLibrary_t)malloc(1);
    return cudaSuccess;
}
cudaError_t cudaLibraryUnload(cudaLibrary_t library) { free(library); return cudaSuccess; }
cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
    VS_UNUSED(name);
    *kernel = (cudaKernel_t)library;          /* distinct for each library, and in no table */
    return cudaSuccess;
}
