/* Steps of tuning, as `tune_nodes` of ../_tuning.py takes them, for one output or several, with or without weights of rows.

   Compiled once for each width of vectors and each precision; kernels.c chooses. A batch lies feature by feature (d, B),
   so that vectors run over rows. Forward, a few vectors of rows of all nodes stay in the cache until they are outputs;
   backward, the products of some features with some nodes run over all rows. Both go by blocks of features that the same
   nodes look at. Sums run in a fixed order: the same processor gives the same bits. */
#include "vectors.h"
#include "activations.h"
#include "tuning.h"

#include <math.h>

/* The task with its numbers, and where the work space has them. */
struct steps {
    const struct tuning_task *task;
    const real *inputs, *targets, *root_weights;
    real *weights, *means, *squares;
    const real *beta;    /* (L, q), the output weights */
    int64_t B, stride;   /* rows with those that fill up, and from one feature or node to the next */
    real *x, *h, *error; /* (d, stride), (L, stride), (q, stride) */
    real *gradient;      /* of all weights */
    int node_by_node;    /* whether nodes are summed up one by one, with what follows */
    int64_t *first;      /* (L + 1), where the weights of each node begin */
    int32_t *place, *at; /* of each weight of a node: where it stands, and where its feature does */
    const real *rows;    /* weights that are looked up; what follows is theirs: see steps_on_ramps.h */
    real *tables, *turned, *sums;
    int32_t *ramps;      /* (c, stride) */
};

#if WIDTH == 16 && !defined(DOUBLE)
#define LOOKS_UP 1
#include "steps_on_ramps.h"
#endif

/* Nodes one by one need no memory for sums, blocks load each feature once for several nodes. With fewer features in a
   block than these, and all of some rows in the nearest cache, the former take 0.88 of the time (20 columns of 2). */
#define FEW_FEATURES 4
#define NEAREST_BYTES 32768

/* The weights of each node, for nodes that are summed up one by one. */
static void list_weights(struct steps *s)
{
    const struct feature_blocks *blocks = &s->task->blocks;
    int64_t L = s->task->n_nodes, n_pairs = blocks->first_node[blocks->n_blocks];
    int64_t bytes = s->task->n_features * TILE_VECTORS * LANES * (int64_t)sizeof(real);
    s->node_by_node = blocks->first_weight[blocks->n_blocks] < FEW_FEATURES * n_pairs && bytes <= NEAREST_BYTES;
    if (!s->node_by_node) return;
    memset(s->first, 0, sizeof(int64_t) * (L + 1));
    for (int fills = 0; fills < 2; fills++) {
        for (int64_t b = 0; b < blocks->n_blocks; b++) {
            int64_t n = blocks->first_feature[b + 1] - blocks->first_feature[b], from = blocks->first_node[b];
            for (int64_t m = from; m < blocks->first_node[b + 1]; m++) {
                int64_t *end = s->first + blocks->nodes[m] + 1;
                for (int64_t k = 0; k < n; k++, ++*end) {
                    if (!fills) continue;
                    s->place[*end] = blocks->first_weight[b] + (m - from) * n + k;
                    s->at[*end] = blocks->features[blocks->first_feature[b] + k] * s->stride;
                }
            }
        }
        /* Counts become beginnings, which the second round moves on to the ends. */
        int64_t begins = 0;
        for (int64_t l = 0; l < L && !fills; l++) {
            int64_t n = s->first[l + 1];
            s->first[l + 1] = begins;
            begins += n;
        }
    }
}

/* The rows of a batch, feature by feature. */
static void gather(const struct steps *s, const int64_t *places)
{
    int64_t d = s->task->n_features, n = s->task->n_batch, whole_rows = d < LANES ? 0 : n / LANES * LANES;
    for (int64_t r = 0; r < whole_rows; r += LANES) {
        const real *from[LANES];
        for (int i = 0; i < LANES; i++) from[i] = s->inputs + places[r + i] * d;
        for (int64_t first = 0; first < d; first += LANES) {
            int64_t k = first + LANES > d ? d - LANES : first;
            vec square[LANES];
            for (int i = 0; i < LANES; i++) square[i] = *(const vec *)(from[i] + k);
            transpose(square);
            for (int i = 0; i < LANES; i++) *(vec *)(s->x + (k + i) * s->stride + r) = square[i];
        }
    }
    for (int64_t r = whole_rows; r < n; r++) {
        const real *from = s->inputs + places[r] * d;
        for (int64_t k = 0; k < d; k++) s->x[k * s->stride + r] = from[k];
    }
}

/* h = phi(x'w) of all nodes and the outputs, for `vectors` vectors of rows from the r-th on. Weights on ramps stand in rows of
   `size`, or there are none; a constant as well. */
static inline __attribute__((always_inline)) void forward_rows(const struct steps *s, int64_t r, int vectors, int size)
{
    const struct tuning_task *t = s->task;
    int64_t q = t->n_outputs;
    if (!s->node_by_node) {
        for (int64_t l = 0; l < t->n_nodes; l++)
            for (int c = 0; c < vectors; c++) ((vec *)(s->h + l * s->stride + r))[c] = all(0);
        add_features(&t->blocks, s->weights, s->x + r, s->stride, s->h + r, vectors);
    }
    for (int64_t l = 0; l < t->n_nodes; l++) {
        vec *out = (vec *)(s->h + l * s->stride + r);
        if (s->node_by_node) {
            vec sum[TILE_VECTORS];
            for (int c = 0; c < vectors; c++) sum[c] = all(0);
            for (int64_t k = s->first[l]; k < s->first[l + 1]; k++) {
                vec by = all(s->weights[s->place[k]]);
                for (int c = 0; c < vectors; c++) sum[c] += by * ((const vec *)(s->x + s->at[k] + r))[c];
            }
#ifdef LOOKS_UP
            if (size) add_ramps(s, l, r, sum, vectors, size);
#endif
            for (int c = 0; c < vectors; c++) out[c] = sum[c];
        }
#ifdef LOOKS_UP
        else if (size) add_ramps(s, l, r, out, vectors, size);
#endif
        activate(out, vectors, t->logistic);
        for (int64_t j = 0; j < q; j++) {
            vec by = all(s->beta[l * q + j]), *to = (vec *)(s->error + j * s->stride + r);
            for (int c = 0; c < vectors; c++) to[c] += by * out[c];
        }
    }
}

static inline __attribute__((always_inline)) void forward_with(const struct steps *s, int size)
{
    int64_t r = 0;
    for (; r + TILE_VECTORS * LANES <= s->B; r += TILE_VECTORS * LANES) forward_rows(s, r, TILE_VECTORS, size);
    for (; r < s->B; r += LANES) forward_rows(s, r, 1, size);
}

static void forward(const struct steps *s)
{
    memset(s->error, 0, sizeof(real) * s->task->n_outputs * s->stride);
#ifdef LOOKS_UP
    if (s->task->lookups.size) {
        fill_tables(s);
        if (s->task->lookups.size == 16) forward_with(s, 16);
        else forward_with(s, 32);
        return;
    }
#endif
    forward_with(s, 0);
}

/* The derivative of a loss other than the squared one. */
static real slope(const struct tuning_task *task, int64_t j, real output, real target)
{
    int64_t q = task->n_outputs;
    double log_mean = output > MOST_LOG_MEAN ? MOST_LOG_MEAN : output < -MOST_LOG_MEAN ? -MOST_LOG_MEAN : output;
    if (task->loss == SLOPE_POISSON) return exp(log_mean) - 1 - target;
    if (task->loss == SLOPE_GAMMA) return 1 - (1 + target) * exp(-log_mean);
    real gap = output - target, limit = task->slopes[j];
    real factor = task->slopes[(gap > 0 ? 2 * q : q) + j];
    return (gap > limit ? limit : gap < -limit ? -limit : gap) * factor;
}

/* Outputs become the gradient of the loss over the rows, times their weights; rows that only fill up get zero. */
static void errors(const struct steps *s, const int64_t *places)
{
    int64_t q = s->task->n_outputs, n = s->task->n_batch;
    real scale = s->task->scale;
    for (int64_t j = 0; j < q; j++) {
        real *error = s->error + j * s->stride;
        for (int64_t r = 0; r < n; r++) {
            real root = s->root_weights ? s->root_weights[places[r]] : 1, target = s->targets[places[r] * q + j];
            if (s->task->loss == SLOPE_SQUARED) error[r] = (error[r] * root - target) * root * scale;
            else error[r] = root > 0 ? slope(s->task, j, error[r], target / root) * root * root * scale : 0;
        }
        for (int64_t r = n; r < s->B; r++) error[r] = 0;
    }
}

/* h'e of a node; with `last` h then becomes the gradient of its argument, for the error e of its only output. */
static inline __attribute__((always_inline)) real product_with_error(
    vec *h, const vec *error, int64_t n, int last, real beta, int64_t logistic)
{
    /* Several sums, as each addition waits for the one before it. */
    vec sum[4] = {all(0), all(0), all(0), all(0)};
    for (int64_t r = 0; r < n; r += 4)
        for (int c = 0; c < 4 && r + c < n; c++) {
            vec value = h[r + c], e = error[r + c];
            sum[c] += value * e;
            if (last) h[r + c] = all(beta) * e * (logistic ? value * (value - 1) : 1 - value * value);
        }
    return total((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* The gradients of the output weights; then h becomes that of the arguments of phi. */
static void back_through_nodes(const struct steps *s)
{
    const struct tuning_task *t = s->task;
    int64_t q = t->n_outputs, n = s->B / LANES;
    real *gradient = s->gradient + (s->beta - s->weights);
    for (int64_t l = 0; l < t->n_nodes; l++) {
        vec *h = (vec *)(s->h + l * s->stride);
        if (q == 1) {
            const vec *error = (const vec *)s->error;
            gradient[l] = t->logistic ? product_with_error(h, error, n, 1, s->beta[l], 1)
                                      : product_with_error(h, error, n, 1, s->beta[l], 0);
            continue;
        }
        for (int64_t j = 0; j < q; j++)
            gradient[l * q + j] = product_with_error(h, (const vec *)(s->error + j * s->stride), n, 0, 0, 0);
        for (int64_t r = 0; r < n; r++) {
            vec sum = all(0), value = h[r];
            for (int64_t j = 0; j < q; j++) sum += all(s->beta[l * q + j]) * ((const vec *)(s->error + j * s->stride))[r];
            h[r] = sum * (t->logistic ? value * (value - 1) : 1 - value * value);
        }
    }
}

/* Products over the rows of `features` features with LANES / features nodes, of which `used` are kept: `features` is a
   constant where it is used. The gradients of a node are `n` apart. */
static inline __attribute__((always_inline)) void some_products(
    const struct steps *s, const int32_t *feature, int features, const int32_t *node, int64_t used, int64_t n, real *gradient)
{
    const int nodes = LANES / features;
    const real *x[LANES], *b[LANES];
    vec sums[LANES];
    for (int i = 0; i < features; i++) x[i] = s->x + feature[i] * s->stride;
    for (int m = 0; m < nodes; m++) b[m] = s->h + node[m < used ? m : 0] * s->stride;
    for (int i = 0; i < LANES; i++) sums[i] = all(0);
    for (int64_t r = 0; r < s->B; r += LANES)
        for (int i = 0; i < features; i++) {
            vec value = *(const vec *)(x[i] + r);
            for (int m = 0; m < nodes; m++) sums[m * features + i] += value * *(const vec *)(b[m] + r);
        }
    vec sum = totals(sums);
    for (int m = 0; m < nodes && m < used; m++)
        for (int i = 0; i < features; i++) gradient[m * n + i] = sum[m * features + i];
}

/* Features that go together out of n that are left: numbers of which LANES leaves little over. */
static inline int together(int64_t n)
{
    if (LANES == 16) return n % 4 == 0 ? 4 : n == 5 || n > 7 ? 5 : n > 3 ? 3 : n;
    if (LANES == 2) return n > 1 ? 2 : 1;
    return n > 3 ? 4 : n > 1 ? 2 : 1;
}

static void back_through_features(const struct steps *s)
{
    const struct feature_blocks *blocks = &s->task->blocks;
    for (int64_t b = 0; b < blocks->n_blocks; b++) {
        const int32_t *feature = blocks->features + blocks->first_feature[b], *nodes = blocks->nodes + blocks->first_node[b];
        int64_t n = blocks->first_feature[b + 1] - blocks->first_feature[b];
        int64_t n_nodes = blocks->first_node[b + 1] - blocks->first_node[b];
        for (int64_t k = 0; k < n;) {
            int some = together(n - k);
            for (int64_t m = 0; m < n_nodes; m += LANES / some) {
                real *gradient = s->gradient + blocks->first_weight[b] + m * n + k;
                if (some == 1) some_products(s, feature + k, 1, nodes + m, n_nodes - m, n, gradient);
                else if (some == 2) some_products(s, feature + k, 2, nodes + m, n_nodes - m, n, gradient);
                else if (some == 3) some_products(s, feature + k, 3, nodes + m, n_nodes - m, n, gradient);
                else if (some == 4) some_products(s, feature + k, 4, nodes + m, n_nodes - m, n, gradient);
                else some_products(s, feature + k, 5, nodes + m, n_nodes - m, n, gradient);
            }
            k += some;
        }
    }
}

#ifdef DOUBLE
#define ROOT sqrt
#else
#define ROOT sqrtf
#endif

/* A step of Adam on some of the weights, from one to another. */
static void move(const struct steps *s, int64_t step, int64_t from, int64_t to, real rate)
{
    const struct tuning_task *t = s->task;
    real *restrict w = s->weights, *restrict mean = s->means, *restrict square = s->squares;
    const real *restrict g = s->gradient;
    real new_mean = 1 - t->mean_decay, new_square = 1 - t->square_decay, root = t->roots[step];
    real by = t->moves[step] * rate, tiny = t->no_division_by_zero;
#if WIDTH == 16 && !defined(DOUBLE)
    /* A root needs a number above zero; where the mean of squares is zero, the mean is too. */
    vec above_zero = all(1e-37f);
    for (; from + LANES <= to; from += LANES) {
        vec gradient = *(const vec *)(g + from), m = *(const vec *)(mean + from), q = *(const vec *)(square + from);
        m += (gradient - m) * new_mean;
        q += (gradient * gradient - q) * new_square;
        *(vec *)(mean + from) = m, *(vec *)(square + from) = q;
        *(vec *)(w + from) -= quotient(m, q * inverse_root(largest(q, above_zero)) * root + tiny) * by;
    }
#endif
    for (int64_t k = from; k < to; k++) {
        mean[k] += (g[k] - mean[k]) * new_mean;
        square[k] += (g[k] * g[k] - square[k]) * new_square;
        w[k] -= mean[k] / (ROOT(square[k]) * root + tiny) * by;
    }
}

/* Weights that have lost the sign that they must keep become zero. */
static void keep_signs(const struct steps *s, int64_t n)
{
    const real *restrict sign = s->task->signs;
    real *restrict w = s->weights;
    for (int64_t k = 0; k < n; k++) w[k] = w[k] * sign[k] < 0 ? 0 : w[k];
}

#ifdef DOUBLE
void JOINED(take_double_steps_, WIDTH)(const struct tuning_task *t)
#else
void JOINED(take_steps_, WIDTH)(const struct tuning_task *t)
#endif
{
    int64_t in_blocks = t->blocks.first_weight[t->blocks.n_blocks], n_inner = in_blocks + t->lookups.n_rows * t->lookups.size;
    int64_t n_all = n_inner + t->n_nodes * t->n_outputs;
    struct steps s = {t, t->inputs, t->targets, t->root_weights, t->weights, t->means, t->squares};
    s.beta = s.weights + n_inner;
    s.B = PADDED(t->n_batch), s.stride = STRIDE(t->n_batch);
    /* Vectors that begin inside a line of the cache would touch two of them. */
    s.x = (real *)(((uintptr_t)t->space + 63) / 64 * 64);
    s.h = s.x + t->n_features * s.stride, s.error = s.h + t->n_nodes * s.stride;
    s.gradient = s.error + t->n_outputs * s.stride;
    s.first = (int64_t *)(((uintptr_t)(s.gradient + n_all) + 63) / 64 * 64);
    s.place = (int32_t *)(s.first + t->n_nodes + 1), s.at = s.place + in_blocks;
#ifdef LOOKS_UP
    s.rows = s.weights + in_blocks;
    s.tables = (real *)(((uintptr_t)(s.at + in_blocks) + 63) / 64 * 64);
    s.turned = s.tables + 2 * (n_inner - in_blocks), s.sums = s.turned + t->lookups.n_groups * LANES * s.B;
    s.ramps = (int32_t *)(s.sums + 2 * MOST_RAMPS * GROUPS_AT_ONCE * LANES);
#endif
    list_weights(&s);
    if (t->gathers) memset(s.x, 0, sizeof(real) * t->n_features * s.stride);
    for (int64_t step = 0; step < t->n_steps; step++) {
        const int64_t *places = t->places + step * t->n_batch;
        if (t->gathers) {
            gather(&s, places);
#ifdef LOOKS_UP
            if (t->lookups.size) find_ramps(&s);
#endif
        }
        forward(&s);
        errors(&s, places);
        back_through_nodes(&s);
        back_through_features(&s);
#ifdef LOOKS_UP
        if (t->lookups.size) back_through_ramps(&s, s.gradient + in_blocks);
#endif
        move(&s, step, 0, n_inner, t->input_rate);
        move(&s, step, n_inner, n_all, t->output_rate);
        if (t->signs) keep_signs(&s, n_all);
    }
}
