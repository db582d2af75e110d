/* The machine file: what every process on one virtual machine must know of the
 * others.  It is an anonymous file (memfd) of the vramscope process, reached by
 * path through /proc, so it ends with that process, however it ends.
 * Python reads the head (virtual/machine.py pins the layout). */
#ifndef VRAMSCOPE_MACHINE_H
#define VRAMSCOPE_MACHINE_H
#include "../vs.h"

#define VS_MACHINE_MAGIC UINT64_C(0x31454d4152565356)  /* "VSVRAME1" */
#define VS_MACHINE_SLOTS 256

struct vs_slot { int32_t pid; int32_t unused; uint64_t used_bytes[VS_MAX_DEVICES]; };   /* by physical device, as below */
struct vs_machine {
    uint64_t magic;
    uint64_t peak_used_bytes[VS_MAX_DEVICES];         /* by all processes together */
    struct vs_slot slots[VS_MACHINE_SLOTS];
};

void vs_machine_lock(void);                           /* across processes; no-op without a machine file */
void vs_machine_unlock(void);
uint64_t vs_machine_others(int physical);             /* used by other live processes */
void vs_machine_publish(int physical, uint64_t used_bytes);
#endif
