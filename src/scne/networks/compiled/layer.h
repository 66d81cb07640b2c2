/* What a call of hidden_outputs is given; `LayerTask` of _kernels.py has the same fields in the same order. */
#ifndef SCNE_LAYER_H
#define SCNE_LAYER_H

#include "blocks.h"

#include <stdint.h>

struct layer_task {
    int64_t n_rows, n_columns, n_ramps, n_nodes, n_outputs;
    int64_t logistic;        /* 1 / (1 + exp(-z)) in place of tanh(z) */
    const double *plain;     /* (n, c), columns as nodes see them */
    const double *raw;       /* (n, c), columns from which ramps are made */
    const int64_t *sources;  /* (k), the column of each ramp */
    const double *starts;    /* (k), where it begins to rise */
    const double *slopes;    /* (k), two over how far it goes */
    const double *weights;   /* of all nodes, block by block: features are columns, and from c on ramps */
    const double *biases;    /* (L) */
    const double *betas;     /* (L, q), or NULL */
    double *hidden;          /* (n, L), or NULL with betas */
    double *outputs;         /* (n, q), to which H beta is added; NULL without betas */
    double *space;           /* scne_layer_space numbers */
    struct feature_blocks blocks;
};

/* Rows whose features are held at a time. */
#define TILE 32

void hidden_outputs_4(const struct layer_task *task);
void hidden_outputs_8(const struct layer_task *task);
void hidden_outputs_16(const struct layer_task *task);

#endif
