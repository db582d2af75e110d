/* The card: its figures from $VRAMSCOPE_CARD, and which of its copies this process sees. */
#define _GNU_SOURCE
#include "../vs.h"
#include "internal.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct vs_card card;
static int all_devices, devices;
static int physical[VS_MAX_DEVICES];
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

/* "2" or "GPU-42424242-..." (nvml.c writes such); -1: names no device of this machine. */
static int device_named(const char *word)
{
    char *end;
    long index = strtol(word, &end, 10);
    unsigned first;
    if (sscanf(word, "GPU-%2x", &first) == 1) index = (long)first - VS_FIRST_UUID_BYTE;
    else if (end == word) return -1;
    return index >= 0 && index < all_devices ? (int)index : -1;
}

/* CUDA_VISIBLE_DEVICES: the devices named before the first word that names none, in that
 * order (CUDA C++ Programming Guide, "CUDA Environment Variables"). */
static void choose_visible(void)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    if (!text) {
        for (devices = 0; devices < all_devices; devices++) physical[devices] = devices;
        return;
    }
    char *copy = strdup(text), *rest = NULL;
    for (char *word = strtok_r(copy, ",", &rest); word && devices < all_devices; word = strtok_r(NULL, ",", &rest)) {
        int device = device_named(word);
        if (device < 0) break;
        physical[devices++] = device;
    }
    free(copy);
}

/* A fork may be given another card than its parent saw; the environment says which. */
static void in_child(void)
{
    static const pthread_once_t again = PTHREAD_ONCE_INIT;
    memset(&card, 0, sizeof card);
    all_devices = devices = 0;
    current_device = 0;
    memcpy(&read_once, &again, sizeof again);
}

static void read_card(void)
{
    static int watching;
    if (!watching++) vs_after_fork(in_child);
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
    all_devices = many ? atoi(many) : 1;
    if (all_devices > VS_MAX_DEVICES) all_devices = VS_MAX_DEVICES;
    choose_visible();
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

int vs_machine_device_count(void)
{
    pthread_once(&read_once, read_card);
    return all_devices;
}

int vs_physical_device(int device)
{
    pthread_once(&read_once, read_card);
    return physical[device];
}

int vs_device(void) { return current_device; }

bool vs_set_device(int device)
{
    if (device < 0 || device >= vs_device_count()) return false;
    current_device = device;
    return true;
}
