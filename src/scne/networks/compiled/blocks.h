/* Weights of nodes in blocks of features that the same nodes look at: all features of a column, mostly. Inside a block
   every weight counts, so that several nodes and several vectors of rows share what is loaded. Include vectors.h first. */
#ifndef SCNE_BLOCKS_H
#define SCNE_BLOCKS_H

#include <stdint.h>

/* `FeatureBlocksTask` of _kernels.py has the same fields in the same order. */
struct feature_blocks {
    int64_t n_blocks;
    const int64_t *first_feature; /* (n_blocks + 1), where the features of each block begin */
    const int64_t *first_node;    /* the same of its nodes */
    const int64_t *first_weight;  /* the same of its weights, node by node */
    const int32_t *features;
    const int32_t *nodes;
};

#ifdef WIDTH

/* Nodes and vectors of rows whose sums are held at a time: as many as leave registers for what they are made of. */
#define TILE_NODES 4
#define TILE_VECTORS (WIDTH == 16 ? 4 : 2)

/* z += sum_k w_k x_k of `nodes` nodes, for `vectors` vectors of rows; both are constants where it is used. */
static inline __attribute__((always_inline)) void add_tile(const real *x, int64_t stride, const int32_t *feature, int64_t n,
    const real *w, const int32_t *node, int nodes, real *z, int vectors)
{
    vec sum[TILE_NODES][TILE_VECTORS], *to[TILE_NODES];
    for (int m = 0; m < nodes; m++) {
        to[m] = (vec *)(z + node[m] * stride);
        for (int c = 0; c < vectors; c++) sum[m][c] = to[m][c];
    }
    for (int64_t k = 0; k < n; k++) {
        const vec *from = (const vec *)(x + feature[k] * stride);
        for (int m = 0; m < nodes; m++) {
            vec by = all(w[m * n + k]);
            for (int c = 0; c < vectors; c++) sum[m][c] += by * from[c];
        }
    }
    for (int m = 0; m < nodes; m++)
        for (int c = 0; c < vectors; c++) to[m][c] = sum[m][c];
}

/* z (L, stride) += W x of `vectors` vectors of rows, for features x (d, stride). */
static inline __attribute__((always_inline)) void add_features(
    const struct feature_blocks *blocks, const real *weights, const real *x, int64_t stride, real *z, int vectors)
{
    for (int64_t b = 0; b < blocks->n_blocks; b++) {
        const int32_t *feature = blocks->features + blocks->first_feature[b], *node = blocks->nodes + blocks->first_node[b];
        const real *w = weights + blocks->first_weight[b];
        int64_t n = blocks->first_feature[b + 1] - blocks->first_feature[b];
        int64_t left = blocks->first_node[b + 1] - blocks->first_node[b];
        for (; left >= TILE_NODES; left -= TILE_NODES, node += TILE_NODES, w += TILE_NODES * n)
            add_tile(x, stride, feature, n, w, node, TILE_NODES, z, vectors);
        if (left == 3) add_tile(x, stride, feature, n, w, node, 3, z, vectors);
        else if (left == 2) add_tile(x, stride, feature, n, w, node, 2, z, vectors);
        else if (left == 1) add_tile(x, stride, feature, n, w, node, 1, z, vectors);
    }
}

#endif
#endif
