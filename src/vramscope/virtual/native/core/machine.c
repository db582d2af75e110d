/* See machine.h. */
#define _GNU_SOURCE
#include "machine.h"
#include "internal.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

static struct vs_machine *machine;
static struct vs_slot *mine;
static int file = -1;
static pthread_once_t open_once = PTHREAD_ONCE_INIT;

/* A child has its own books and needs its own slot and its own lock on the file:
 * an inherited descriptor would share the parent's lock. */
static void in_child(void)
{
    static const pthread_once_t again = PTHREAD_ONCE_INIT;
    if (file >= 0) close(file);
    file = -1;
    machine = NULL;
    mine = NULL;
    memcpy(&open_once, &again, sizeof again);
}

static void open_machine(void)
{
    static int watching;
    if (!watching++) vs_after_fork(in_child);
    const char *path = vs_setting("VRAMSCOPE_MACHINE");
    if (!path) return;
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return;                             /* its vramscope process is gone: go on alone */
    void *map = mmap(NULL, sizeof *machine, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) return;
    machine = map;
    if (machine->magic != VS_MACHINE_MAGIC) vs_die("VRAMSCOPE_MACHINE is of another version of vramscope: %s", path);
}

static struct vs_machine *opened(void)
{
    pthread_once(&open_once, open_machine);
    return machine;
}

void vs_machine_lock(void) { if (opened()) flock(file, LOCK_EX); }
void vs_machine_unlock(void) { if (machine) flock(file, LOCK_UN); }

static bool alive(int pid) { return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM); }

/* Called under the lock.  A slot of a dead process is free. */
static struct vs_slot *own_slot(void)
{
    if (mine) return mine;
    for (int i = 0; i < VS_MACHINE_SLOTS; i++) {
        struct vs_slot *slot = &machine->slots[i];
        if (alive(slot->pid)) continue;
        memset(slot, 0, sizeof *slot);
        slot->pid = getpid();
        return mine = slot;
    }
    return NULL;
}

uint64_t vs_machine_others(int physical)
{
    uint64_t sum = 0;
    if (!opened()) return 0;
    for (int i = 0; i < VS_MACHINE_SLOTS; i++) {
        struct vs_slot *slot = &machine->slots[i];
        if (slot != mine && slot->used_bytes[physical] && alive(slot->pid)) sum += slot->used_bytes[physical];
    }
    return sum;
}

void vs_machine_publish(int physical, uint64_t used_bytes)
{
    if (!opened() || !own_slot()) return;
    mine->used_bytes[physical] = used_bytes;
    uint64_t all = used_bytes + vs_machine_others(physical);
    if (all > machine->peak_used_bytes[physical]) machine->peak_used_bytes[physical] = all;
}

uint64_t vs_machine_used_bytes(int physical)
{
    uint64_t own = opened() && mine ? mine->used_bytes[physical] : 0;
    return own + vs_machine_others(physical);
}

static bool holds_memory(const struct vs_slot *slot)
{
    for (int device = 0; device < VS_MAX_DEVICES; device++)
        if (slot->used_bytes[device]) return alive(slot->pid);
    return false;
}

int vs_processes(struct vs_process *out, int room)
{
    int count = 0;
    if (!opened()) return 0;
    for (int i = 0; i < VS_MACHINE_SLOTS; i++) {
        struct vs_slot *slot = &machine->slots[i];
        if (!holds_memory(slot)) continue;
        if (count < room) {
            out[count].pid = slot->pid;
            memcpy(out[count].used_bytes, slot->used_bytes, sizeof slot->used_bytes);
        }
        count++;
    }
    return count;
}

__attribute__((destructor)) static void leave(void)
{
    if (mine && mine->pid == getpid()) memset(mine, 0, sizeof *mine);
}
