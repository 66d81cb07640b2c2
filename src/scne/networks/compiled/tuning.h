/* What a call of take_steps is given; `TuningTask` of _kernels.py has the same fields in the same order. */
#ifndef SCNE_TUNING_H
#define SCNE_TUNING_H

#include "blocks.h"
#include "shared.h"

#include <stdint.h>

/* Weights on the ramps of columns, a row of them for each node and column that it looks at; `LookupsTask` of _kernels.py has
   the same fields in the same order. For vectors of 16 in single precision alone. */
struct lookups {
    int64_t n_columns;          /* c */
    int64_t size;               /* 16 or 32 numbers of a row */
    int64_t n_rows;             /* those of all nodes, node by node */
    int64_t n_groups;           /* of 16 nodes that stand in a vector */
    int64_t first_height;       /* the feature of the first column that has ramps */
    const int64_t *n_ramps;     /* (c) */
    const int64_t *first_row;   /* (L + 1), where the rows of each node begin */
    const int32_t *columns;     /* (n_rows) */
    const int32_t *lanes;       /* (n_groups, 16), the node in each lane, or -1 */
    const int64_t *first_group; /* (c + 1), where those of each column begin among the following */
    const int32_t *groups;      /* that look at the column */
    const int32_t *rows;        /* (16) for each of them: the rows of their nodes, or -1 */
};

/* Derivatives of losses, for an output f and a target t: f - t; the same within limits and times a factor; and those of the
   logarithms of Poisson and gamma means, exp(f) for a target 1 + t. */
#define SLOPE_SQUARED 0
#define SLOPE_CLIPPED 1
#define SLOPE_POISSON 2
#define SLOPE_GAMMA 3
#define MOST_LOG_MEAN 30.0

/* Numbers are of single or of double precision, as the kernel is. */
struct tuning_task {
    int64_t n_batch, n_features, n_nodes, n_outputs, n_steps;
    int64_t logistic;         /* 1 / (1 + exp(z)) in place of tanh(z) */
    int64_t gathers;          /* 0 where every batch is all rows and lies in the space already */
    int64_t loss;             /* a SLOPE_ below: the derivative of the loss that steps follow */
    const void *inputs;       /* (n, d + 1), the last feature is one */
    const void *targets;      /* (n, q), times the root weights */
    const void *root_weights; /* (n), or NULL */
    const int64_t *places;    /* (n_steps, n_batch), the rows of each step */
    void *weights;            /* of all nodes, block by block, then in rows, then the output weights (L, q) */
    void *means, *squares;    /* Adam's running means of their gradients */
    const double *moves;      /* of each step: the share of the rates, with the correction of the means */
    const double *roots;      /* of each step: the correction of the root mean squares */
    void *space;              /* scne_space numbers */
    const double *slopes;     /* (3, q) of a clipped derivative: its limit, and factors below and above the target */
    const void *signs;        /* that each of the weights keeps, 0 where it is free; or NULL */
    double scale, input_rate, output_rate, mean_decay, square_decay, no_division_by_zero;
    struct feature_blocks blocks;
    struct lookups lookups;
};

/* Rows of a batch are filled up with zeros to whole vectors of the widest kind. Features and nodes stand a line of the
   cache further apart: at a power of two they would fall on the same few lines. */
#define PADDED(n) (((n) + 15) / 16 * 16)
#define STRIDE(n) (PADDED(n) + 16)

/* Numbers that ramps are looked up with: tables, gradients turned, sums by ramp, ramps of rows. */
#define LOOKUP_SPACE(n_batch, n_features, n_nodes, n_looked_up) \
    (2 * (n_looked_up) + PADDED(n_nodes) * PADDED(n_batch) + 2 * 32 * 4 * 16 + STRIDE(n_batch) * (n_features) + 64)

void take_steps_4(const struct tuning_task *task);
void take_steps_8(const struct tuning_task *task);
void take_steps_16(const struct tuning_task *task);
void take_double_steps_4(const struct tuning_task *task);
void take_double_steps_8(const struct tuning_task *task);
void take_double_steps_16(const struct tuning_task *task);

#endif
