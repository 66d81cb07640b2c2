/* What a call of take_steps is given; `TuningTask` of _kernels.py has the same fields in the same order. */
#ifndef SCNE_TUNING_H
#define SCNE_TUNING_H

#include "shared.h"

#include <stdint.h>

struct tuning_task {
    int64_t n_batch, n_features, n_nodes, n_outputs, n_steps;
    int64_t logistic;          /* 1 / (1 + exp(z)) in place of tanh(z) */
    const float *inputs;       /* (n, d + 1), the last feature is one */
    const float *targets;      /* (n, q), times the root weights */
    const float *root_weights; /* (n), or NULL */
    const int64_t *places;     /* (n_steps, n_batch), the rows of each step */
    const int64_t *first;      /* (L + 1), where the weights of each node begin */
    const int32_t *features;   /* of each weight */
    float *weights;            /* of all nodes, then the output weights (L, q) */
    float *means, *squares;    /* Adam's running means of their gradients */
    const float *moves;        /* of each step: the share of the rates, with the correction of the means */
    const float *roots;        /* of each step: the correction of the root mean squares */
    float *space;              /* n_space numbers */
    float scale, input_rate, output_rate, mean_decay, square_decay, no_division_by_zero;
};

/* Rows of a batch are filled up with zeros to whole vectors of the widest kind. */
#define PADDED(n) (((n) + 15) / 16 * 16)

void take_steps_4(const struct tuning_task *task);
void take_steps_8(const struct tuning_task *task);
void take_steps_16(const struct tuning_task *task);

#endif
