/* What a call of add_nodes is given; `SearchTask` of _kernels.py has the same fields in the same order. */
#ifndef SCNE_SEARCH_H
#define SCNE_SEARCH_H

#include <stdint.h>

/* Numbers are of single or of double precision, as the kernel is, where no type is stated. Rows are filled up with zeros
   to `n_padded`, a multiple of SEARCH_ROWS. */
struct search_task {
    int64_t n_padded, n_features, n_candidates, n_outputs, n_blocks, n_contractions;
    int64_t logistic;             /* 1 / (1 + exp(z)) in place of tanh(z) */
    int64_t capacity;             /* the most nodes of the network */
    int64_t size;                 /* nodes that are there; those that are added are counted */
    int64_t node;                 /* the number of the next node, from 1 */
    int64_t most;                 /* nodes that the pool may give */
    int64_t n_added;              /* nodes that it gave */
    int64_t contraction;          /* the place of the one for which the first of them was admissible */
    const void *inputs;           /* (n_padded / SEARCH_ROWS, d, SEARCH_ROWS), the last feature is one */
    const void *root_weights;     /* (n_padded) */
    const int64_t *first_feature; /* (n_blocks + 1), where the features of each column begin */
    const int32_t *features;      /* column by column */
    const double *pool;           /* (d, T), times the gain of the activation */
    const double *contractions;   /* increasing */
    void *basis;                  /* (capacity, n_padded), Q' */
    double *residual;             /* (q, n_padded) */
    double *ridge_rows;           /* (capacity, capacity), rows of Q' in the rows of the ridge */
    double *ridge_residual;       /* (capacity, q) */
    double *factor;               /* (capacity, capacity), R */
    int64_t *added;               /* (most), places of the nodes in the pool */
    double *squares;              /* (most + 1, q), e'e before and after each of them */
    void *space;                  /* scne_search_space bytes */
    const double *turns;          /* (T), the signs that output weights must have, 0 where they are free; or NULL */
    double ridge, least_square, dependence, ties, project_again_below, nothing_left;
};

/* Rows of a tile of inputs, for vectors of any width. */
#define SEARCH_ROWS 64

void add_nodes_4(struct search_task *task);
void add_nodes_8(struct search_task *task);
void add_nodes_16(struct search_task *task);
void add_double_nodes_4(struct search_task *task);
void add_double_nodes_8(struct search_task *task);
void add_double_nodes_16(struct search_task *task);

#endif
