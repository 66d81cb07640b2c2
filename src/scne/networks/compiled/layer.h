/* What a call of hidden_outputs is given; `Layer` and `RowsTask` of _kernels.py have the same fields in the same order. */
#ifndef SCNE_LAYER_H
#define SCNE_LAYER_H

#include "blocks.h"

#include <stdint.h>

/* A hidden layer, the same at every call. A node is given by the features that it sees, or, where the ramps of every column
   meet end to end (`tables`), by the columns that it sees. */
struct layer {
    int64_t n_columns, n_ramps, n_nodes;
    int64_t logistic;            /* 1: 1 / (1 + exp(-z)) in place of tanh(z); 2: z itself */
    int64_t linked;              /* whether columns are further outputs, after the nodes */
    int64_t shares_columns;      /* whether columns and their scaling are those of the layer before */
    const int64_t *columns;      /* (c), in the input */
    const double *shift, *scale; /* (c) */
    const double *lower, *upper; /* (c), to which columns are limited first, or NULL */
    const double *full;          /* how many deviations count in full, of more their logarithm; NULL: all do */
    const int64_t *sources;      /* (k), the column of each ramp */
    const double *starts;        /* (k), where it begins to rise */
    const double *slopes;        /* (k), two over how far it goes */
    const int64_t *order;        /* (L), the nodes in the order of their tables */
    const int64_t *first;        /* (L + 1), where the columns of each of them begin */
    const int32_t *features;     /* of each weight, its column */
    const double *weights;       /* of columns, in that order; without tables, of the features of `blocks` */
    const double *biases;        /* (L), with tables also what columns of one ramp give in its middle */
    const int64_t *first_ramps;  /* (c + 1), where the ramps of each column begin */
    const int64_t *sizes;        /* (c), the room for the ramps of each column in a table: 0, 1, 4, 8, 16 or 32 */
    const double *knots;         /* of each column, in so much room, the starts of its ramps, their slopes, the value of the
                                    scaled column in the middle of each, and half of what it gains along it */
    const int64_t *first_tables; /* (L), where the tables of each node begin */
    const double *tables;        /* of each weight, in so much room, what a column gives in the middle of each ramp, and half
                                    of what it gains along it (of one ramp, the first is in the bias); or NULL */
    const double *betas;         /* (L, q), with links (L + c, q); or NULL */
    struct feature_blocks blocks; /* without tables; columns are followed by ramps */
};

struct rows_task {
    int64_t n_rows, n_inputs, n_layers, n_outputs;
    int64_t by_nodes;     /* hidden outputs as (L, n) */
    const struct layer *layers;
    const double *inputs; /* (n, d) */
    double *hidden;       /* (n, L), with links (n, L + c), of a single layer; or NULL with betas */
    double *outputs;      /* (n, q), the sum of H beta over the layers; NULL without betas */
    double *space;
};

/* Rows whose features are held at a time. */
#define TILE 64
/* Nodes whose outputs are computed at a time. */
#define NODES_AT_ONCE 8

void hidden_outputs_4(const struct rows_task *task);
void hidden_outputs_8(const struct rows_task *task);
void hidden_outputs_16(const struct rows_task *task);

#endif
