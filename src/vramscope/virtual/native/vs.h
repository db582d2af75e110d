/* What the stand-ins share: the card, the books, the values, the journal.
 *
 * Everything here is defined in core/, which is a library of its own
 * (vs-core.so); each stand-in (cudart.c, cuda.c, nvml.c, cudnn.c, ...) replaces
 * one library of NVIDIA's and links to it.  Device memory is address space
 * only: no byte of it can be read or written. */
#ifndef VRAMSCOPE_VS_H
#define VRAMSCOPE_VS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VS_MAX_DEVICES 64
#define VS_FIRST_UUID_BYTE 0x40       /* a device's UUID is this plus its place on the machine, 16 times */
#define VS_UP(n, unit) (((n) + (unit) - 1) / (unit) * (unit))
#define VS_UNUSED(x) ((void)(x))

/* ---- the card ------------------------------------------------------------------
 * Read once from $VRAMSCOPE_CARD ("key=value;key=value"), written by Python
 * (cards/card.py, Card.to_native()); each field's name is its key. */
struct vs_card {
    char name[256];
    int major, minor;                 /* compute capability */
    int sms;
    uint64_t memory_bytes;            /* as cudaGetDeviceProperties reports it */
    uint64_t outside_bytes;           /* the context and what is loaded into it: taken off at first use */
    int l2_bytes;
    int shared_per_sm_bytes, shared_per_block_optin_bytes, shared_reserved_bytes;
    int registers_per_sm;
    int threads_per_sm, blocks_per_sm;
    int sm_khz, memory_khz, bus_bits;
};
const struct vs_card *vs_card(void);
int vs_device_count(void);            /* that this process sees (CUDA_VISIBLE_DEVICES is honoured) */
int vs_machine_device_count(void);    /* that the machine has, as NVML counts */
int vs_physical_device(int device);   /* which of the machine's a device of this process is */
int vs_device(void);                  /* the calling thread's current device */
bool vs_set_device(int device);       /* false: no such device */

/* ---- the books -----------------------------------------------------------------
 * Physical memory is handed out in granules of 2 MiB, as the driver does; the
 * lowest free address range is taken, so a run is the same every time.  A first
 * call charges the card with outside_bytes. */
#define VS_GRANULE ((uint64_t)2 << 20)
void *vs_take(int device, uint64_t bytes);            /* NULL: the card is full */
bool vs_give(void *address);                          /* false: not ours */
bool vs_charge(int device, uint64_t bytes);           /* physical memory without an address (cuMemCreate, NCCL's own) */
void vs_discharge(int device, uint64_t bytes);
uint64_t vs_used_bytes(int device);                   /* by this process, the context included */
uint64_t vs_used_by_all_bytes(int device);            /* by every process on the machine */
uint64_t vs_machine_used_bytes(int physical_device);   /* the same, as NVML counts devices */
bool vs_address_range(const void *p, void **base, uint64_t *bytes);
void *vs_reserve(uint64_t bytes, void *wanted);       /* address space alone; NULL: none left */
void vs_unreserve(void *address);
bool vs_is_device_pointer(const void *p);
int vs_device_of(const void *p);                      /* -1: no device pointer */
uint64_t vs_peak_used_bytes(int device);              /* by this process, since the last call of the next */
void vs_reset_peak_used(int device);
bool vs_open_context(int device);                     /* charges outside_bytes once; false: no room even for it */
struct vs_process { int pid; uint64_t used_bytes[VS_MAX_DEVICES]; };   /* by physical device */
int vs_processes(struct vs_process *out, int room);   /* live ones that hold memory; returns how many there are */

/* ---- values --------------------------------------------------------------------
 * Bytes copied to the card are remembered until something may have changed them
 * (the next kernel), so that they read back. */
void vs_copied_in(void *device_dst, const void *src, size_t bytes);
void vs_copied_across(void *dst, const void *src, size_t bytes);
void vs_overwritten(const void *device_dst, size_t bytes);  /* memset, a collective's result ... */
void vs_kernel_launched(void);                        /* forgets all echoes */
/* Device to host: prepared answers first (vs_answer), then the echo, else zeros. */
void vs_read_back(void *dst, const void *device_src, size_t bytes);
/* Prepares the next reads of at most 8 bytes of this thread (a queue of 64). */
void vs_answer(int64_t value);
int vs_answers_left(void);                            /* drops what was not taken; returns how many */

/* ---- uses ----------------------------------------------------------------------
 * What a library was given an address for, in order; the last 65,536 are kept. */
enum { VS_WORKSPACE, VS_COMMUNICATION, VS_INPUT };    /* VS_INPUT: a copy from the host went there */
struct vs_use { uint64_t address, bytes; int64_t time_us; int32_t device, kind; };
void vs_used_as(int kind, const void *address, uint64_t bytes);   /* host addresses and nothing are left out */
int vs_take_uses(struct vs_use *out, int room);       /* the oldest first; each is told once */

/* ---- time ----------------------------------------------------------------------
 * A virtual clock per stream: libraries that choose by timing (cudnn.benchmark)
 * see the duration that the executed work is modelled to take. */
struct vs_stream { double clock; };                   /* what a stream handle points to begins so */
void vs_elapse(void *stream, double seconds);
double vs_clock(void *stream);

/* ---- the journal ---------------------------------------------------------------
 * One JSON object a line, appended with a single write to $VRAMSCOPE_JOURNAL.
 * `fields` is the inside of the object after "pid" and "kind", already JSON. */
void vs_journal(const char *kind, const char *fields_format, ...) __attribute__((format(printf, 2, 3)));
/* Every symbol without a body of its own comes here; the first call of each is
 * journalled as {"kind": "unsimulated", "library", "symbol", "answer"}. */
long vs_unsimulated(const char *library, const char *symbol, int *seen, long answer);
/* A size that had to be invented or modelled; the first of each `what` in a
 * process is journalled as {"kind": "uncounted" or "modelled", "what", "bytes", "note"}. */
#define VS_UNKNOWN UINT64_MAX         /* for `bytes`: not even a model is known; the journal says null, never 0 */
void vs_uncounted(const char *what, uint64_t bytes, const char *note);
void vs_modelled(const char *what, uint64_t bytes, const char *note);
const char *vs_setting(const char *name);             /* getenv, "" counts as unset */
#endif
