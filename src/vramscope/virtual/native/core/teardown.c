/* The end of a Python process.
 *
 * A thread that wants the interpreter while it is being finalized is ended by CPython
 * before 3.14 with pthread_exit (Python/pystate.c, PyThread_exit_thread), which unwinds
 * its C++ frames; torch's autograd threads have frames that must not be unwound, and the
 * process dies of std::terminate.  On a card the last kernels keep such threads busy long
 * enough to be rare; here a backward ends at once and a short script meets it often.
 * From 3.14 on CPython lets such threads wait for the process to end; so does this. */
#define _GNU_SOURCE
#include "internal.h"
#include <dlfcn.h>
#include <unistd.h>

static int python_is_finalizing(void)
{
    int (*ask)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsFinalizing");           /* public since 3.13 */
    if (!ask) ask = (int (*)(void))dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    return ask && ask();
}

__attribute__((noreturn)) void pthread_exit(void *value)
{
    while (python_is_finalizing()) pause();
    void (*real)(void *) __attribute__((noreturn));
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_exit");
    real(value);
}
