/* Forgetting the configurations of attention once a plan of theirs has run.
 *
 * Each configuration of an attention graph holds some 0.3 MB in the installed library, and
 * torch keeps the descriptors of all of them with the plan, for every shape that it meets:
 * a program whose lengths vary would grow by 1 to 2 MB a length.  After a plan has run
 * nobody has a use for them but to run it again, which needs its duration alone. */
#include "cudnn_planning.h"
#include <pthread.h>
#include <stdlib.h>

#define MOST_CONFIGS 16                /* attention lists 3 to 5; what does not fit is simply kept */
struct listing { int members; int count; struct descriptor *configs[MOST_CONFIGS]; };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void add_member(struct listing *listing, struct descriptor *descriptor)
{
    listing->members++;
    descriptor->listing = listing;
}

/* A configuration that a heuristic hands out. */
void listing_join(struct descriptor *heuristic, struct descriptor *config)
{
    if (heuristic->work.filter || config->listing) return;
    pthread_mutex_lock(&lock);
    struct listing *listing = heuristic->listing ? heuristic->listing : calloc(1, sizeof *listing);
    if (listing && !heuristic->listing) add_member(listing, heuristic);
    if (listing && listing->count < MOST_CONFIGS) {
        add_member(listing, config);
        listing->configs[listing->count++] = config;
    }
    pthread_mutex_unlock(&lock);
}

/* A plan made of a configuration. */
void listing_share(struct descriptor *plan, const struct descriptor *config)
{
    pthread_mutex_lock(&lock);
    if (config->listing && !plan->listing) add_member(config->listing, plan);
    pthread_mutex_unlock(&lock);
}

/* A descriptor that is about to be freed. */
void listing_leave(struct descriptor *member)
{
    struct listing *listing = member->listing;
    if (!listing) return;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < listing->count; i++)
        if (listing->configs[i] == member) listing->configs[i--] = listing->configs[--listing->count];
    int left = --listing->members;
    pthread_mutex_unlock(&lock);
    if (!left) free(listing);
}

static void drop(struct real_descriptor **real)
{
    real_release(*real);
    *real = NULL;
}

/* A plan has run: what the installed library holds for it and its siblings goes. */
void listing_forget(struct descriptor *plan)
{
    struct listing *listing = plan->listing;
    if (!listing) return;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < listing->count; i++) drop(&listing->configs[i]->real);
    pthread_mutex_unlock(&lock);
    drop(&plan->real);
    drop(&plan->config);
}
