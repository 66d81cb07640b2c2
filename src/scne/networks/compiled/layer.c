/* Outputs of a hidden layer in double precision, from columns: ramps are made for some rows at a time, in the cache, and of
   every node only the weights that are not zero are looked at. A row's outputs do not depend on the rows beside it. */
#define DOUBLE
#include "vectors.h"
#include "activations.h"
#include "layer.h"
#include "shared.h"

/* Features (c + k, TILE) of some rows; those beyond the last row, up to a whole vector, are zero. */
static void fill(const struct layer_task *t, int64_t from, int64_t n, int64_t vectors, double *x)
{
    int64_t c = t->n_columns;
    double *raw = x + (c + t->n_ramps) * TILE;
    for (int64_t j = 0; j < c; j++)
        for (int64_t r = 0; r < vectors * LANES; r++) {
            x[j * TILE + r] = r < n ? t->plain[(from + r) * c + j] : 0.0;
            raw[j * TILE + r] = r < n ? t->raw[(from + r) * c + j] : 0.0;
        }
    for (int64_t k = 0; k < t->n_ramps; k++) {
        vec start = all(t->starts[k]), slope = all(t->slopes[k]);
        const vec *source = (const vec *)(raw + t->sources[k] * TILE);
        vec *ramp = (vec *)(x + (c + k) * TILE);
        for (int64_t i = 0; i < vectors; i++)
            ramp[i] = largest(least((source[i] - start) * slope - 1.0, all(1.0)), all(-1.0));
    }
}

/* phi(w'x + b) of all nodes (L, TILE), for `vectors` vectors of rows from the r-th on; a constant where it is used. */
static inline __attribute__((always_inline)) void some_outputs(
    const struct layer_task *t, const double *x, double *h, int64_t r, int vectors)
{
    for (int64_t l = 0; l < t->n_nodes; l++)
        for (int c = 0; c < vectors; c++) ((vec *)(h + l * TILE + r))[c] = all(t->biases[l]);
    add_features(&t->blocks, t->weights, x + r, TILE, h + r, vectors);
    for (int64_t l = 0; l < t->n_nodes; l++) {
        vec *out = (vec *)(h + l * TILE + r);
        for (int c = 0; c < vectors; c++) out[c] = t->logistic ? logistic_of(-out[c]) : tanh_of(out[c]);
    }
}

/* Outputs (L, TILE) of all nodes on the first `vectors` vectors of rows. */
static void nodes(const struct layer_task *t, const double *x, double *h, int64_t vectors)
{
    int64_t at = 0;
    for (; at + TILE_VECTORS <= vectors; at += TILE_VECTORS) some_outputs(t, x, h, at * LANES, TILE_VECTORS);
    for (; at < vectors; at++) some_outputs(t, x, h, at * LANES, 1);
}

/* h (L, TILE) as rows of the hidden outputs (n, L). */
static void put(const struct layer_task *t, int64_t from, int64_t n, const double *h)
{
    int64_t L = t->n_nodes, whole_nodes = n == TILE ? L / LANES * LANES : 0;
    for (int64_t l = 0; l < whole_nodes; l += LANES)
        for (int64_t r = 0; r < TILE; r += LANES) {
            vec s[LANES];
            for (int i = 0; i < LANES; i++) s[i] = *(const vec *)(h + (l + i) * TILE + r);
            transpose(s);
            for (int i = 0; i < LANES; i++) *(vec *)(t->hidden + (from + r + i) * L + l) = s[i];
        }
    for (int64_t l = whole_nodes; l < L; l++)
        for (int64_t r = 0; r < n; r++) t->hidden[(from + r) * L + l] = h[l * TILE + r];
}

void JOINED(hidden_outputs_, WIDTH)(const struct layer_task *t)
{
    /* Vectors that begin inside a line of the cache would touch two of them. */
    double *x = (double *)(((uintptr_t)t->space + 63) / 64 * 64), *h = x + (2 * t->n_columns + t->n_ramps) * TILE, *output = h + t->n_nodes * TILE;
    int64_t q = t->n_outputs;
    for (int64_t from = 0; from < t->n_rows; from += TILE) {
        int64_t n = t->n_rows - from < TILE ? t->n_rows - from : TILE, vectors = (n + LANES - 1) / LANES;
        fill(t, from, n, vectors, x);
        nodes(t, x, h, vectors);
        if (t->hidden) put(t, from, n, h);
        if (!t->betas) continue;
        memset(output, 0, sizeof(double) * q * TILE);
        for (int64_t l = 0; l < t->n_nodes; l++)
            for (int64_t j = 0; j < q; j++) {
                vec by = all(t->betas[l * q + j]), *to = (vec *)(output + j * TILE);
                for (int64_t i = 0; i < vectors; i++) to[i] += by * ((const vec *)(h + l * TILE))[i];
            }
        for (int64_t j = 0; j < q; j++)
            for (int64_t r = 0; r < n; r++) t->outputs[(from + r) * q + j] += output[j * TILE + r];
    }
}
