/* Outputs of a hidden layer in double precision, from columns: ramps are made for some rows at a time, in the cache, and of
   every node only the weights that are not zero are looked at. A row's outputs do not depend on the rows beside it. */
#include "layer.h"
#include "shared.h"

#define DOUBLE
#include "vectors.h"
#include "activations.h"

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

/* Vectors of rows that are summed up at a time, of nodes that go together. */
#define VECTORS_OF_ONE 4
#define VECTORS_OF_FOUR 2

/* phi(w'x + b) of `nodes` nodes on the same features, for `vectors` vectors of rows; both are constants where it is used. */
static inline __attribute__((always_inline)) void some_outputs(
    const struct layer_task *t, int64_t l, int nodes, const double *x, double *h, int64_t at, int vectors)
{
    const int32_t *feature = t->features + t->first[l];
    int64_t n = t->first[l + 1] - t->first[l];
    vec sum[NODES_TOGETHER][VECTORS_OF_ONE];
    for (int m = 0; m < nodes; m++)
        for (int c = 0; c < vectors; c++) sum[m][c] = all(t->biases[t->order[l + m]]);
    for (int64_t k = 0; k < n; k++) {
        const vec *from = (const vec *)(x + (int64_t)feature[k] * TILE) + at;
        for (int m = 0; m < nodes; m++) {
            vec by = all(t->weights[t->first[l] + m * n + k]);
            for (int c = 0; c < vectors; c++) sum[m][c] += by * from[c];
        }
    }
    for (int m = 0; m < nodes; m++) {
        vec *to = (vec *)(h + t->order[l + m] * TILE) + at;
        for (int c = 0; c < vectors; c++) to[c] = t->logistic ? logistic_of(-sum[m][c]) : tanh_of(sum[m][c]);
    }
}

/* Whether four nodes from l on look at the same features: their weights then follow each other. */
static int alike(const struct layer_task *t, int64_t l)
{
    if (l + NODES_TOGETHER > t->n_nodes) return 0;
    int64_t n = t->first[l + 1] - t->first[l];
    for (int m = 1; m < NODES_TOGETHER; m++) {
        const int32_t *other = t->features + t->first[l + m];
        if (t->first[l + m + 1] - t->first[l + m] != n) return 0;
        if (memcmp(t->features + t->first[l], other, n * sizeof(int32_t))) return 0;
    }
    return 1;
}

/* Outputs (L, TILE) of all nodes on the first `vectors` vectors of rows. */
static void nodes(const struct layer_task *t, const double *x, double *h, int64_t vectors)
{
    for (int64_t l = 0; l < t->n_nodes;) {
        int64_t at = 0;
        if (alike(t, l)) {
            for (; at + VECTORS_OF_FOUR <= vectors; at += VECTORS_OF_FOUR)
                some_outputs(t, l, NODES_TOGETHER, x, h, at, VECTORS_OF_FOUR);
            for (; at < vectors; at++) some_outputs(t, l, NODES_TOGETHER, x, h, at, 1);
            l += NODES_TOGETHER;
            continue;
        }
        for (; at + VECTORS_OF_ONE <= vectors; at += VECTORS_OF_ONE) some_outputs(t, l, 1, x, h, at, VECTORS_OF_ONE);
        for (; at < vectors; at++) some_outputs(t, l, 1, x, h, at, 1);
        l++;
    }
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
    double *x = t->space, *h = x + (2 * t->n_columns + t->n_ramps) * TILE, *output = h + t->n_nodes * TILE;
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
