/* Values.  What was copied to the card is remembered until a kernel may have
 * changed it; what is read back is a prepared answer, that echo, or zeros. */
#include "../vs.h"
#include "internal.h"
#include <stdlib.h>
#include <string.h>

/* Larger copies are data, not sizes or flags; remembering them would cost a copy each. */
#define LARGEST_ECHO ((size_t)1 << 20)
#define MOST_ANSWERS 64

struct echo { uint64_t at; size_t bytes; char *copy; };
static struct echo *echoes;
static size_t echo_count, echo_room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int64_t answers[MOST_ANSWERS];
static __thread int answer_count, answers_taken;

static void drop(size_t i)
{
    free(echoes[i].copy);
    echoes[i] = echoes[--echo_count];
}

static void forget_range(uint64_t at, size_t bytes)
{
    for (size_t i = echo_count; i-- > 0;)
        if (echoes[i].at < at + bytes && at < echoes[i].at + echoes[i].bytes) drop(i);
}

static void remember(uint64_t at, const void *src, size_t bytes)
{
    forget_range(at, bytes);
    char *copy = bytes && bytes <= LARGEST_ECHO ? malloc(bytes) : NULL;
    if (!copy) return;
    if (echo_count == echo_room) {
        struct echo *more = realloc(echoes, (echo_room * 2 + 64) * sizeof *more);
        if (!more) { free(copy); return; }
        echoes = more;
        echo_room = echo_room * 2 + 64;
    }
    memcpy(copy, src, bytes);
    echoes[echo_count++] = (struct echo){at, bytes, copy};
}

static const char *recall(uint64_t at, size_t bytes)
{
    for (size_t i = 0; i < echo_count; i++)
        if (at >= echoes[i].at && at + bytes <= echoes[i].at + echoes[i].bytes) return echoes[i].copy + (at - echoes[i].at);
    return NULL;
}

void vs_copied_in(void *device_dst, const void *src, size_t bytes)
{
    pthread_mutex_lock(&lock);
    remember((uint64_t)device_dst, src, bytes);
    pthread_mutex_unlock(&lock);
}

void vs_copied_across(void *dst, const void *src, size_t bytes)
{
    if (dst == src) return;
    pthread_mutex_lock(&lock);
    const char *known = recall((uint64_t)src, bytes);
    char *copy = known ? malloc(bytes) : NULL;    /* remember() may move what `known` points to */
    if (copy) memcpy(copy, known, bytes);
    if (copy) remember((uint64_t)dst, copy, bytes);
    else forget_range((uint64_t)dst, bytes);
    free(copy);
    pthread_mutex_unlock(&lock);
}

void vs_overwritten(const void *device_dst, size_t bytes)
{
    if (!__atomic_load_n(&echo_count, __ATOMIC_RELAXED)) return;
    pthread_mutex_lock(&lock);
    forget_range((uint64_t)device_dst, bytes);
    pthread_mutex_unlock(&lock);
}

void vs_kernel_launched(void)
{
    if (!__atomic_load_n(&echo_count, __ATOMIC_RELAXED)) return;
    pthread_mutex_lock(&lock);
    while (echo_count) drop(echo_count - 1);
    pthread_mutex_unlock(&lock);
}

static bool take_answer(void *dst, size_t bytes)
{
    if (bytes > sizeof *answers || answers_taken == answer_count) return false;
    memcpy(dst, &answers[answers_taken++], bytes);
    return true;
}

void vs_read_back(void *dst, const void *device_src, size_t bytes)
{
    if (take_answer(dst, bytes)) return;
    pthread_mutex_lock(&lock);
    const char *known = recall((uint64_t)device_src, bytes);
    if (known) memcpy(dst, known, bytes);
    pthread_mutex_unlock(&lock);
    if (!known) memset(dst, 0, bytes);
}

void vs_answer(int64_t value)
{
    if (answers_taken == answer_count) answers_taken = answer_count = 0;
    if (answer_count < MOST_ANSWERS) answers[answer_count++] = value;
}

int vs_answers_left(void)
{
    int left = answer_count - answers_taken;
    answers_taken = answer_count = 0;
    return left;
}
