/* What libraries were given memory for: work spaces, communication buffers, copies from the
 * host.  Kept with the time in a ring; the recorder finds the allocator's block that lay there
 * then, and so knows exactly what no allocator does. */
#define _POSIX_C_SOURCE 200809L
#include "../vs.h"
#include "internal.h"
#include <stdatomic.h>
#include <time.h>

#define ROOM (1u << 16)

static struct vs_use ring[ROOM];
static uint64_t first, end;          /* counts of all; the ring holds the last ROOM */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);     /* what torch's history tells its times in */
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* A fork has its parent's uses told by the parent; a lock that another thread held is nobody's now. */
static void in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    first = end;
}

void vs_used_as(int kind, const void *address, uint64_t bytes)
{
    int device = address && bytes ? vs_device_of(address) : -1;
    if (device < 0) return;
    static atomic_int watching;
    if (!atomic_exchange(&watching, 1)) vs_after_fork(in_child);
    struct vs_use use = {(uint64_t)address, bytes, now_us(), device, kind};
    pthread_mutex_lock(&lock);
    ring[end++ % ROOM] = use;
    if (end - first > ROOM) first = end - ROOM;
    pthread_mutex_unlock(&lock);
}

int vs_take_uses(struct vs_use *out, int room)
{
    int taken = 0;
    pthread_mutex_lock(&lock);
    while (first < end && taken < room) out[taken++] = ring[first++ % ROOM];
    pthread_mutex_unlock(&lock);
    return taken;
}
