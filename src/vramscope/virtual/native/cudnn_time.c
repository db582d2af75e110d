/* How long work would take on the card: a roofline, enough to rank the plans of one
 * convolution as cudnn.benchmark does, not to predict a speed.
 *
 * Operations per clock and multiprocessor, dense, products summed in fp32: NVIDIA's
 * architecture white papers (Volta, Turing, Ampere GA100 and GA102, Ada, Hopper, Blackwell).
 * Data-centre cards of 8.6 and 8.9 do twice the fp16 rate of the GeForce figure used here. */
#include "cudnn_parts.h"

struct rates { int capability, half, tf32, single, dbl; };
static const struct rates RATES[] = {
    {70, 1024, 0, 128, 64},
    {75, 1024, 0, 128, 4},
    {80, 2048, 1024, 128, 64},
    {86, 512, 256, 256, 4},
    {89, 512, 256, 256, 4},
    {90, 4096, 2048, 256, 128},
    {100, 8192, 4096, 256, 128},
    {120, 512, 256, 256, 4},
};

/* Of the peak, what a good kernel reaches; they matter only against each other. */
#define COMPUTE_EFFICIENCY 0.7
#define MEMORY_EFFICIENCY 0.85
#define LAUNCH_SECONDS 4e-6
/* cuDNN lists its configurations by the time that it expects itself, which knows tiles and
 * occupancy; this keeps its order between plans that the roofline cannot tell apart, and
 * makes no two equal (cudnn_frontend's time_sorted_plan keeps one plan of a time). */
#define RANK_PENALTY 0.02

static const struct rates *card_rates(void)
{
    int capability = vs_card()->major * 10 + vs_card()->minor;
    const struct rates *best = RATES;
    for (size_t i = 0; i < sizeof RATES / sizeof *RATES; i++)
        if (RATES[i].capability <= capability) best = &RATES[i];
    return best;
}

static double operations_per_second(int type, bool tensor_core)
{
    const struct rates *rates = card_rates();
    int each = type == CUDNN_DATA_DOUBLE ? rates->dbl : rates->single;
    if (tensor_core && type == CUDNN_DATA_FLOAT && rates->tf32) each = rates->tf32;
    else if (tensor_core && type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_DOUBLE) each = rates->half;
    return (double)each * vs_card()->sms * vs_card()->sm_khz * 1e3 * COMPUTE_EFFICIENCY;
}

/* memory_khz is the clock of a double-rate bus, as cudaDeviceProp reports it. */
static double bytes_per_second(void)
{
    return 2.0 * vs_card()->memory_khz * 1e3 * vs_card()->bus_bits / 8 * MEMORY_EFFICIENCY;
}

double roofline_seconds(double flops, double bytes, int type, bool tensor_core)
{
    double compute = flops / operations_per_second(type, tensor_core), memory = bytes / bytes_per_second();
    return LAUNCH_SECONDS + (compute > memory ? compute : memory);
}

static bool has(const struct plan_notes *notes, cudnnBackendNumericalNote_t note)
{
    return notes->numerical >> note & 1u;
}

/* Multiplications that Winograd's transforms save for 3x3 filters: F(2x2, 3x3) 36 / 16,
 * F(4x4, 3x3) 144 / 36 (Lavin and Gray, arXiv 1509.09308, section 4). */
static double winograd_saving(const struct plan_notes *notes)
{
    if (has(notes, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6) || has(notes, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13))
        return 4;
    return has(notes, CUDNN_NUMERICAL_NOTE_WINOGRAD) ? 2.25 : 1;
}

/* What lies in the workspace (transposed copies, partial sums) is written once and read
 * once, by kernels before or after the main one. */
double plan_seconds(const struct work *work, const struct plan_notes *notes)
{
    bool tensor_core = has(notes, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    double main = roofline_seconds(work->flops / winograd_saving(notes), work->bytes, work->type, tensor_core);
    double workspace = notes->workspace_bytes ? LAUNCH_SECONDS + 2.0 * (double)notes->workspace_bytes / bytes_per_second() : 0;
    return (main + workspace) * (1 + RANK_PENALTY * notes->rank);
}

void cudnn_elapse(cudnnHandle_t handle, double flops, double bytes, int type)
{
    vs_kernel_launched();
    vs_elapse(cudnn_stream(handle), roofline_seconds(flops, bytes, type, true));
}
