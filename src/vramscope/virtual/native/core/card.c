/* The card: its figures from $VRAMSCOPE_CARD, and which of its copies this process sees. */
#define _GNU_SOURCE
#include "../vs.h"
#include "internal.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct vs_card card;
static int devices;
static pthread_once_t read_once = PTHREAD_ONCE_INIT;
static __thread int current_device;

const char *vs_setting(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

struct field { const char *key; size_t offset; enum { INT, SIZE } type; };
#define AN_INT(name) {#name, offsetof(struct vs_card, name), INT}
#define A_SIZE(name) {#name, offsetof(struct vs_card, name), SIZE}
static const struct field FIELDS[] = {
    AN_INT(major), AN_INT(minor), AN_INT(sms), A_SIZE(memory_bytes), A_SIZE(outside_bytes), AN_INT(l2_bytes),
    AN_INT(shared_per_sm_bytes), AN_INT(shared_per_block_optin_bytes), AN_INT(shared_reserved_bytes),
    AN_INT(registers_per_sm), AN_INT(threads_per_sm), AN_INT(blocks_per_sm),
    AN_INT(sm_khz), AN_INT(memory_khz), AN_INT(bus_bits),
};

static void set_field(const char *key, const char *value)
{
    if (!strcmp(key, "name")) {
        snprintf(card.name, sizeof card.name, "%s", value);
        return;
    }
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++) {
        if (strcmp(key, FIELDS[i].key)) continue;
        char *at = (char *)&card + FIELDS[i].offset;
        if (FIELDS[i].type == INT) *(int *)at = atoi(value);
        else *(uint64_t *)at = strtoull(value, NULL, 10);
        return;
    }
}

/* CUDA_VISIBLE_DEVICES: the number of valid entries before the first invalid one,
 * as the driver counts them (CUDA C Programming Guide, environment variables). */
static int visible(int all)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    if (!text) return all;
    int count = 0;
    char *copy = strdup(text), *rest = NULL;
    for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        char *end;
        long index = strtol(word, &end, 10);
        bool by_uuid = !strncmp(word, "GPU-", 4);
        if (!by_uuid && (end == word || index < 0 || index >= all)) break;
        count++;
    }
    free(copy);
    return count < all ? count : all;
}

static void read_card(void)
{
    const char *text = vs_setting("VRAMSCOPE_CARD");
    if (!text) return;                            /* no card: device count 0 */
    char *copy = strdup(text), *rest = NULL;
    for (char *pair = strtok_r(copy, ";", &rest); pair; pair = strtok_r(NULL, ";", &rest)) {
        char *equals = strchr(pair, '=');
        if (!equals) continue;
        *equals = 0;
        set_field(pair, equals + 1);
    }
    free(copy);
    if (!card.major || !card.memory_bytes || !card.sms)
        vs_die("the description of the card in VRAMSCOPE_CARD is incomplete: %s", text);
    const char *many = vs_setting("VRAMSCOPE_DEVICES");
    int all = many ? atoi(many) : 1;
    devices = visible(all > VS_MAX_DEVICES ? VS_MAX_DEVICES : all);
}

const struct vs_card *vs_card(void)
{
    pthread_once(&read_once, read_card);
    return &card;
}

int vs_device_count(void)
{
    pthread_once(&read_once, read_card);
    return devices;
}

int vs_device(void) { return current_device; }

bool vs_set_device(int device)
{
    if (device < 0 || device >= vs_device_count()) return false;
    current_device = device;
    return true;
}
