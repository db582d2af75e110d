/* The books: which addresses are taken on which card, and how much physical
 * memory that costs.  Addresses are reserved, never backed: touching one is a
 * segmentation fault, as it is with a real device pointer. */
#define _GNU_SOURCE
#include "../vs.h"
#include "internal.h"
#include "machine.h"
#include <string.h>
#include <sys/mman.h>

/* Fragmentation of a card's address space is not a thing that happens on a real
 * one (it has 2^49 bytes); four times the memory keeps it from happening here. */
#define ARENA_TIMES_MEMORY 4
/* All arenas together must fit into the 47 bits that a Linux process has, and leave
 * room for what torch reserves of them itself (expandable segments). */
#define ALL_ARENAS ((uint64_t)1 << 45)

struct device {
    uint64_t base, limit;                             /* of the arena; 0: not reserved yet */
    struct vs_ranges live;                            /* sorted by address */
    uint64_t used, peak;                              /* physical bytes of this process */
    bool context;
};
static struct device devices[VS_MAX_DEVICES];
static struct vs_ranges reservations;                 /* address space alone, for mapped memory */
static int reservation_device[1 << 14];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void in_child(void)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&lock, &fresh, sizeof fresh);
    for (int i = 0; i < VS_MAX_DEVICES; i++) {
        devices[i].used = devices[i].peak = 0;
        devices[i].context = false;
        devices[i].live.count = 0;
    }
}

static void *reserve_space(uint64_t bytes, void *wanted)
{
    void *at = mmap(wanted, bytes + VS_GRANULE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static bool open_arena(struct device *d)
{
    static int watching;
    if (d->base) return true;
    if (!watching++) vs_after_fork(in_child);
    uint64_t room = VS_UP(vs_card()->memory_bytes, VS_GRANULE) * ARENA_TIMES_MEMORY;
    uint64_t most = VS_UP(ALL_ARENAS / (uint64_t)vs_device_count(), VS_GRANULE);
    if (room > most) room = most;
    void *at = reserve_space(room, NULL);
    if (!at) return false;
    d->base = VS_UP((uint64_t)at, VS_GRANULE);
    d->limit = d->base + room;
    return true;
}

/* ---- physical memory; callers hold the lock -------------------------------------- */
static bool charge(int device, uint64_t bytes)
{
    struct device *d = &devices[device];
    vs_machine_lock();
    bool fits = d->used + bytes + vs_machine_others(vs_physical_device(device)) <= vs_card()->memory_bytes;
    if (fits) {
        d->used += bytes;
        if (d->used > d->peak) d->peak = d->used;
        vs_machine_publish(vs_physical_device(device), d->used);
    }
    vs_machine_unlock();
    return fits;
}

static void discharge(int device, uint64_t bytes)
{
    devices[device].used -= bytes;
    vs_machine_lock();
    vs_machine_publish(vs_physical_device(device), devices[device].used);
    vs_machine_unlock();
}

static bool open_context(int device)
{
    struct device *d = &devices[device];
    if (!d->context) d->context = charge(device, vs_card()->outside_bytes);
    return d->context;
}

/* The place in `live` before the first gap of at least `bytes`, and the gap's address. */
static bool lowest_gap(const struct device *d, uint64_t bytes, size_t *where, uint64_t *at)
{
    uint64_t from = d->base;
    size_t i = 0;
    for (; i < d->live.count; i++) {
        if (d->live.items[i].at - from >= bytes) break;
        from = d->live.items[i].at + d->live.items[i].bytes;
    }
    *where = i;
    *at = from;
    return from + bytes <= d->limit;
}

/* The index of the range of `live` that holds an address, or -1. */
static long range_of(const struct device *d, uint64_t address)
{
    size_t low = 0, high = d->live.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (d->live.items[middle].at <= address) low = middle + 1;
        else high = middle;
    }
    if (!low) return -1;
    const struct vs_range *r = &d->live.items[low - 1];
    return address < r->at + r->bytes ? (long)low - 1 : -1;
}

static int arena_of(uint64_t address)
{
    for (int i = 0; i < vs_device_count(); i++)
        if (address >= devices[i].base && address < devices[i].limit) return i;
    return -1;
}

/* ---- what the stand-ins call ---------------------------------------------------- */
bool vs_open_context(int device)
{
    if (device < 0 || device >= vs_device_count()) return false;
    if (__atomic_load_n(&devices[device].context, __ATOMIC_RELAXED)) return true;
    pthread_mutex_lock(&lock);
    bool open = open_context(device);
    pthread_mutex_unlock(&lock);
    return open;
}

void *vs_take(int device, uint64_t bytes)
{
    struct device *d = &devices[device];
    uint64_t need = VS_UP(bytes ? bytes : 1, VS_GRANULE), at = 0;
    size_t where;
    pthread_mutex_lock(&lock);
    if (open_context(device) && open_arena(d) && lowest_gap(d, need, &where, &at) && charge(device, need))
        vs_ranges_insert(&d->live, where, (struct vs_range){at, need});
    else
        at = 0;
    pthread_mutex_unlock(&lock);
    return (void *)at;
}

bool vs_give(void *address)
{
    int device = arena_of((uint64_t)address);
    if (device < 0) return false;
    pthread_mutex_lock(&lock);
    struct device *d = &devices[device];
    long i = range_of(d, (uint64_t)address);
    bool ours = i >= 0 && d->live.items[i].at == (uint64_t)address;
    if (ours) {
        discharge(device, d->live.items[i].bytes);
        vs_ranges_remove(&d->live, (size_t)i);
    }
    pthread_mutex_unlock(&lock);
    return ours;
}

bool vs_charge(int device, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    bool fits = open_context(device) && charge(device, VS_UP(bytes, VS_GRANULE));
    pthread_mutex_unlock(&lock);
    return fits;
}

void vs_discharge(int device, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    discharge(device, VS_UP(bytes, VS_GRANULE));
    pthread_mutex_unlock(&lock);
}

uint64_t vs_used_bytes(int device)
{
    pthread_mutex_lock(&lock);
    uint64_t used = devices[device].used;
    pthread_mutex_unlock(&lock);
    return used;
}

uint64_t vs_used_by_all_bytes(int device)
{
    pthread_mutex_lock(&lock);
    uint64_t used = devices[device].used + vs_machine_others(vs_physical_device(device));
    pthread_mutex_unlock(&lock);
    return used;
}

uint64_t vs_peak_used_bytes(int device) { return devices[device].peak; }

void vs_reset_peak_used(int device)
{
    pthread_mutex_lock(&lock);
    devices[device].peak = devices[device].used;
    pthread_mutex_unlock(&lock);
}

/* ---- addresses --------------------------------------------------------------------- */
static long reservation_of(uint64_t address)
{
    for (size_t i = 0; i < reservations.count; i++)
        if (address - reservations.items[i].at < reservations.items[i].bytes) return (long)i;
    return -1;
}

void *vs_reserve(uint64_t bytes, void *wanted)
{
    void *raw = reserve_space(bytes, wanted);
    if (!raw) return NULL;
    uint64_t at = VS_UP((uint64_t)raw, VS_GRANULE);
    pthread_mutex_lock(&lock);
    bool room = reservations.count < sizeof reservation_device / sizeof *reservation_device;
    if (room) {
        reservation_device[reservations.count] = vs_device();
        vs_ranges_insert(&reservations, reservations.count, (struct vs_range){at, bytes});
    }
    pthread_mutex_unlock(&lock);
    if (!room) munmap(raw, bytes + VS_GRANULE);
    return room ? (void *)at : NULL;
}

void vs_unreserve(void *address)
{
    pthread_mutex_lock(&lock);
    long i = reservation_of((uint64_t)address);
    if (i >= 0) {
        munmap(address, reservations.items[i].bytes);  /* the alignment's rest stays: address space is free */
        memmove(reservation_device + i, reservation_device + i + 1,
                (reservations.count - (size_t)i - 1) * sizeof *reservation_device);
        vs_ranges_remove(&reservations, (size_t)i);
    }
    pthread_mutex_unlock(&lock);
}

int vs_device_of(const void *p)
{
    int device = arena_of((uint64_t)p);
    if (device >= 0 || !__atomic_load_n(&reservations.count, __ATOMIC_RELAXED)) return device;
    pthread_mutex_lock(&lock);
    long i = reservation_of((uint64_t)p);
    device = i >= 0 ? reservation_device[i] : -1;
    pthread_mutex_unlock(&lock);
    return device;
}

bool vs_is_device_pointer(const void *p) { return vs_device_of(p) >= 0; }

bool vs_address_range(const void *p, void **base, uint64_t *bytes)
{
    int device = arena_of((uint64_t)p);
    bool found = false;
    pthread_mutex_lock(&lock);
    long i = device >= 0 ? range_of(&devices[device], (uint64_t)p) : reservation_of((uint64_t)p);
    if (i >= 0) {
        struct vs_range *r = device >= 0 ? &devices[device].live.items[i] : &reservations.items[i];
        *base = (void *)r->at;
        *bytes = r->bytes;
        found = true;
    }
    pthread_mutex_unlock(&lock);
    return found;
}
