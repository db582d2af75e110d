/* The journal: one JSON object a line, one write a line, so that lines of several
 * processes never mix and nothing is lost when a process is killed. */
#define _GNU_SOURCE
#include "../vs.h"
#include "internal.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int journal = -1;
static pthread_once_t open_once = PTHREAD_ONCE_INIT;

/* Which subjects were already told: few, so a list does. */
static const char *told[256];
static int told_count;
static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER;

/* The environment may name another journal for a fork.  What the parent told nobody is told again. */
static void in_child(void)
{
    static const pthread_once_t again = PTHREAD_ONCE_INIT;
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    if (journal < 0) told_count = 0;
    journal = -1;
    memcpy(&open_once, &again, sizeof again);
    memcpy(&told_lock, &fresh, sizeof fresh);
}

static void open_journal(void)
{
    static int watching;
    if (!watching++) vs_after_fork(in_child);
    const char *path = vs_setting("VRAMSCOPE_JOURNAL");
    if (path) journal = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
}

void vs_journal(const char *kind, const char *fields_format, ...)
{
    pthread_once(&open_once, open_journal);
    if (journal < 0) return;
    char line[4096];
    int used = snprintf(line, sizeof line, "{\"pid\": %d, \"kind\": \"%s\"", (int)getpid(), kind);
    if (fields_format && *fields_format) {
        used += snprintf(line + used, sizeof line - (size_t)used, ", ");
        va_list arguments;
        va_start(arguments, fields_format);
        used += vsnprintf(line + used, sizeof line - (size_t)used, fields_format, arguments);
        va_end(arguments);
    }
    if (used > (int)sizeof line - 3) return;      /* a line cut short would be no JSON */
    line[used++] = '}';
    line[used++] = '\n';
    ssize_t written = write(journal, line, (size_t)used);
    VS_UNUSED(written);                           /* a lost line must not disturb the program */
}

long vs_unsimulated(const char *library, const char *symbol, int *seen, long answer)
{
    if (!__atomic_exchange_n(seen, 1, __ATOMIC_RELAXED))
        vs_journal("unsimulated", "\"library\": \"%s\", \"symbol\": \"%s\", \"answer\": %ld", library, symbol, answer);
    return answer;
}

static bool first_of(const char *what)
{
    bool first = true;
    pthread_mutex_lock(&told_lock);
    for (int i = 0; i < told_count && first; i++) first = strcmp(told[i], what) != 0;
    if (first && told_count < (int)(sizeof told / sizeof *told)) told[told_count++] = strdup(what);
    pthread_mutex_unlock(&told_lock);
    return first;
}

static void tell(const char *kind, const char *what, uint64_t bytes, const char *note)
{
    char size[24];
    snprintf(size, sizeof size, bytes == VS_UNKNOWN ? "null" : "%llu", (unsigned long long)bytes);
    if (first_of(what)) vs_journal(kind, "\"what\": \"%s\", \"bytes\": %s, \"note\": \"%s\"", what, size, note);
}

void vs_uncounted(const char *what, uint64_t bytes, const char *note) { tell("uncounted", what, bytes, note); }
void vs_modelled(const char *what, uint64_t bytes, const char *note) { tell("modelled", what, bytes, note); }
