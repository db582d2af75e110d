/* Descriptors of the graph API, as cudnn_graph.c and cudnn_plan.c see them. */
#ifndef VRAMSCOPE_CUDNN_PLANNING_H
#define VRAMSCOPE_CUDNN_PLANNING_H
#include "cudnn_parts.h"
#pragma GCC visibility push(hidden)

/* The engine configurations that one heuristic listed, while their descriptors live. */
struct listing;

/* A descriptor of the installed library, destroyed with the last of ours that names it. */
struct real_descriptor { atomic_int users; cudnnBackendDescriptor_t handle; };

struct descriptor {
    cudnnBackendDescriptorType_t type;
    struct real_descriptor *real;      /* NULL: a variant pack, or forgotten */
    struct work work;                  /* of the tensor, operation, graph, configuration or plan */
    int rank;                          /* of a configuration or plan: see struct plan_notes */
    int64_t elements, leading;         /* of a tensor: how many there are, and its first dimension */
    bool is_virtual;                   /* of a tensor: never in memory */
    bool unordered;                    /* of a heuristic: it lists its configurations in no order of speed */
    struct listing *listing;           /* of a heuristic, its configurations and their plans */
    struct real_descriptor *config;    /* of a plan: the engine configuration */
    int64_t workspace_bytes;           /* of a plan */
    double seconds;                    /* of a plan: how long one execution takes */
    bool finalized, built;             /* of a plan: built = the installed library has compiled it */
    void *workspace;                   /* of a variant pack */
    atomic_bool executed;              /* of a plan */
};
struct real_descriptor *real_retain(struct real_descriptor *real);
void real_release(struct real_descriptor *real);

/* cudnn_listing.c */
void listing_join(struct descriptor *heuristic, struct descriptor *config);
void listing_share(struct descriptor *plan, const struct descriptor *config);
void listing_leave(struct descriptor *member);
void listing_forget(struct descriptor *plan);

cudnnStatus_t not_kept(const struct descriptor *descriptor, cudnnBackendAttributeName_t name);
cudnnStatus_t plan_finalize(struct descriptor *plan);
cudnnStatus_t plan_get(struct descriptor *plan, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       int64_t room, int64_t *count, void *value);

#pragma GCC visibility pop
#endif
