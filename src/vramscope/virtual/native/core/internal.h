/* Shared by the files of the core alone. */
#ifndef VRAMSCOPE_CORE_INTERNAL_H
#define VRAMSCOPE_CORE_INTERNAL_H
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* A sorted or unsorted run of address ranges that grows as needed. */
struct vs_range { uint64_t at, bytes; };
struct vs_ranges { struct vs_range *items; size_t count, room; };

struct vs_range *vs_ranges_insert(struct vs_ranges *list, size_t where, struct vs_range item);
void vs_ranges_remove(struct vs_ranges *list, size_t where);

void vs_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void vs_after_fork(void (*in_child)(void));
#endif
