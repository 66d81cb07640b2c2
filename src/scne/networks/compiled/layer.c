/* Outputs of hidden layers in double precision, from columns: they are scaled, and their ramps made, for some rows at a time,
   in the cache, and of every node only the weights that are not zero are looked at. A row's outputs do not depend on the rows
   beside it. */
#define DOUBLE
#include <math.h>
#include "vectors.h"
#include "activations.h"
#include "layer.h"
#include "shared.h"
#if WIDTH == 16
#include "pieces.h"
#endif

/* Columns (c, TILE) of some rows as they are and scaled; those beyond the last row, up to a whole vector, are as zero. */
static void fill(const struct rows_task *r, const struct layer *t, int64_t from, int64_t n, int64_t vectors, double *x, double *raw)
{
    for (int64_t j = 0; j < t->n_columns; j++, x += TILE, raw += TILE) {
        const double *input = r->inputs + from * r->n_inputs + t->columns[j];
        for (int64_t i = 0; i < n; i++) raw[i] = input[i * r->n_inputs];
        for (int64_t i = n; i < vectors * LANES; i++) raw[i] = 0.0;
        vec shift = all(t->shift[j]), scale = all(t->scale[j]), most = all(0.0);
        for (int64_t i = 0; i < vectors; i++) {
            vec value = ((const vec *)raw)[i];
            if (t->lower) value = least(largest(value, all(t->lower[j])), all(t->upper[j]));
            value = (value - shift) / scale;
            ((vec *)x)[i] = value;
            most = largest(most, largest(value, -value));
        }
        double size = 0.0;
        for (int i = 0; i < LANES; i++) size = most[i] > size ? most[i] : size;
        if (!t->full || size <= *t->full) continue;
        for (int64_t i = 0; i < vectors * LANES; i++)
            if (fabs(x[i]) > *t->full) x[i] = copysign(*t->full + log1p(fabs(x[i]) - *t->full), x[i]);
    }
}

/* Ramps (k, TILE), after the columns. */
static void ramps(const struct layer *t, const double *raw, double *ramps, int64_t vectors)
{
    for (int64_t k = 0; k < t->n_ramps; k++) {
        vec start = all(t->starts[k]), slope = all(t->slopes[k]);
        const vec *source = (const vec *)(raw + t->sources[k] * TILE);
        vec *ramp = (vec *)(ramps + k * TILE);
        for (int64_t i = 0; i < vectors; i++)
            ramp[i] = largest(least((source[i] - start) * slope - 1.0, all(1.0)), all(-1.0));
    }
}

/* w'x + b of all nodes (L, TILE), by features, for `vectors` vectors of rows from the r-th on; a constant. */
static inline __attribute__((always_inline)) void feature_sums(
    const struct layer *t, const double *x, double *z, int64_t r, int vectors)
{
    for (int64_t l = 0; l < t->n_nodes; l++)
        for (int c = 0; c < vectors; c++) ((vec *)(z + l * TILE + r))[c] = all(t->biases[l]);
    add_features(&t->blocks, t->weights, x + r, TILE, z + r, vectors);
}

static void sums_by_features(const struct layer *t, const double *x, double *z, int64_t vectors)
{
    int64_t at = 0;
    for (; at + TILE_VECTORS <= vectors; at += TILE_VECTORS) feature_sums(t, x, z, at * LANES, TILE_VECTORS);
    for (; at < vectors; at++) feature_sums(t, x, z, at * LANES, 1);
}

/* phi(z) of some nodes from l on, in place, and what it adds to the outputs (q, TILE). */
static void give(const struct layer *t, int64_t l, int64_t n_nodes, int64_t vectors, int64_t q, double *z, double *output)
{
    for (int64_t m = 0; m < n_nodes; m++) {
        vec *values = (vec *)(z + m * TILE);
        if (t->logistic == 2) continue;
        if (t->logistic)
            for (int64_t i = 0; i < vectors; i++) values[i] = logistic_of(-values[i]);
        else
            for (int64_t i = 0; i < vectors; i++) values[i] = tanh_of(values[i]);
    }
    for (int64_t j = 0; t->betas && j < q; j++)
        for (int64_t i = 0; i < vectors; i++) {
            vec sum = ((vec *)(output + j * TILE))[i];
            for (int64_t m = 0; m < n_nodes; m++) {
                int64_t node = t->tables ? t->order[l + m] : l + m;
                sum += t->betas[node * q + j] * ((vec *)(z + m * TILE))[i];
            }
            ((vec *)(output + j * TILE))[i] = sum;
        }
}

/* h (L, TILE) as rows of the hidden outputs, of `width` numbers each. */
static void put(double *hidden, int64_t L, int64_t width, int64_t n, const double *h)
{
    int64_t whole_nodes = n == TILE ? L / LANES * LANES : 0;
    for (int64_t l = 0; l < whole_nodes; l += LANES)
        for (int64_t r = 0; r < TILE; r += LANES) {
            vec s[LANES];
            for (int i = 0; i < LANES; i++) s[i] = *(const vec *)(h + (l + i) * TILE + r);
            transpose(s);
            for (int i = 0; i < LANES; i++) *(vec *)(hidden + (r + i) * width + l) = s[i];
        }
    for (int64_t l = whole_nodes; l < L; l++)
        for (int64_t r = 0; r < n; r++) hidden[r * width + l] = h[l * TILE + r];
}

/* Links of columns (c, TILE). */
static void links(const struct layer *t, int64_t q, const double *x, double *output, int64_t vectors)
{
    for (int64_t c = 0; c < t->n_columns; c++)
        for (int64_t j = 0; j < q; j++) {
            vec by = all(t->betas[(t->n_nodes + c) * q + j]), *to = (vec *)(output + j * TILE);
            for (int64_t i = 0; i < vectors; i++) to[i] += by * ((const vec *)(x + c * TILE))[i];
        }
}

void JOINED(hidden_outputs_, WIDTH)(const struct rows_task *r)
{
    int64_t q = r->n_outputs, most_columns = 0;
    for (int64_t m = 0; m < r->n_layers; m++)
        if (r->layers[m].n_columns > most_columns) most_columns = r->layers[m].n_columns;
    /* Vectors that lie across two lines of the cache take twice as long to load. */
    double *output = (double *)(((uintptr_t)r->space + 63) / 64 * 64), *z = output + q * TILE;
    double *raw = z + NODES_AT_ONCE * TILE, *x = raw + most_columns * TILE;
    for (int64_t from = 0; from < r->n_rows; from += TILE) {
        int64_t n = r->n_rows - from < TILE ? r->n_rows - from : TILE, vectors = (n + LANES - 1) / LANES;
        memset(output, 0, sizeof(double) * q * TILE);
        for (const struct layer *t = r->layers; t < r->layers + r->n_layers; t++) {
            int64_t c = t->n_columns, width = t->n_nodes + (t->linked ? c : 0);
            double *h = x + (t->tables ? 5 * c : c + t->n_ramps) * TILE;
            if (!t->shares_columns) fill(r, t, from, n, vectors, x, raw);
#if WIDTH == 16
            struct pieces p = {x, x + c * TILE, x + 2 * c * TILE, x + 3 * c * TILE, (int64_t *)(x + 4 * c * TILE)};
            if (t->tables) find_pieces(t, raw, &p, vectors);
#endif
            if (!t->tables) {
                ramps(t, raw, x + c * TILE, vectors);
                sums_by_features(t, x, h, vectors);
            }
            for (int64_t l = 0; l < t->n_nodes; l += NODES_AT_ONCE) {
                int64_t some = t->n_nodes - l < NODES_AT_ONCE ? t->n_nodes - l : NODES_AT_ONCE;
#if WIDTH == 16
                if (t->tables) sums_by_columns(t, l, some, &p, z, vectors);
#endif
                give(t, l, some, vectors, q, t->tables ? z : h + l * TILE, output);
                if (!t->tables || t->betas) continue;
                for (int64_t m = 0; m < some; m++)
                    memcpy(h + t->order[l + m] * TILE, z + m * TILE, vectors * sizeof(vec));
            }
            if (t->linked && t->betas) links(t, q, x, output, vectors);
            if (t->betas) continue;
            if (r->by_nodes) {
                for (int64_t l = 0; l < t->n_nodes; l++)
                    memcpy(r->hidden + l * r->n_rows + from, h + l * TILE, sizeof(double) * n);
                continue;
            }
            put(r->hidden + from * width, t->n_nodes, width, n, h);
            if (t->linked) put(r->hidden + from * width + t->n_nodes, c, width, n, x);
        }
        for (int64_t j = 0; j < q; j++)
            for (int64_t i = 0; i < n; i++) r->outputs[(from + i) * q + j] = output[j * TILE + i];
    }
}
