/* Lists of address ranges, and the way out when nothing else is left. */
#include "internal.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void vs_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("vramscope: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    _exit(2);
}

struct vs_range *vs_ranges_insert(struct vs_ranges *list, size_t where, struct vs_range item)
{
    if (list->count == list->room) {
        size_t room = list->room * 2 + 64;
        struct vs_range *items = realloc(list->items, room * sizeof *items);
        if (!items) vs_die("the host has no memory for the books");
        list->items = items;
        list->room = room;
    }
    memmove(list->items + where + 1, list->items + where, (list->count - where) * sizeof item);
    list->items[where] = item;
    list->count++;
    return &list->items[where];
}

void vs_ranges_remove(struct vs_ranges *list, size_t where)
{
    list->count--;
    memmove(list->items + where, list->items + where + 1, (list->count - where) * sizeof *list->items);
}

void vs_after_fork(void (*in_child)(void))
{
    if (pthread_atfork(NULL, NULL, in_child)) vs_die("no memory for a fork handler");
}
