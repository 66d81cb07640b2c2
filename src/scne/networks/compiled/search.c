/* A pool of candidates from weights to nodes: its outputs, the sums that rank it, the choice, and the new columns of the
   basis, as `GrowingBasis` and `select_candidates` have them in NumPy. A candidate's own columns alone are read, and no
   Gram matrix of the pool is formed: of it only the rows of the chosen candidates matter. */
#include "vectors.h"
#include "activations.h"
#include "blocks.h"
#include "search.h"
#include "selection.h"
#include "shared.h"

#include <math.h>

/* The task with its numbers, and where the work space has them. */
struct search {
    struct search_task *task;
    int64_t n, T, q;
    const real *inputs, *root_weights;
    real *basis;
    struct feature_blocks blocks;
    int64_t *first_node, *first_weight;
    int32_t *nodes;
    real *weights, *tile, *outputs; /* of blocks; (T, SEARCH_ROWS) and (T, n) */
    real *errors, *column;          /* (q, n) and (n), the residual and a new column in this precision */
    double *fresh;                  /* (n), the new column */
    double *ridge_row, *coefficients, *again;
    struct pool_sums sums;
};

/* Weights of the pool, column by column, of the candidates that look at it. */
static void pack(struct search *s)
{
    const struct search_task *t = s->task;
    int64_t n_nodes = 0, n_weights = 0;
    for (int64_t b = 0; b < t->n_blocks; b++) {
        const int32_t *feature = t->features + t->first_feature[b];
        int64_t n = t->first_feature[b + 1] - t->first_feature[b];
        s->first_node[b] = n_nodes, s->first_weight[b] = n_weights;
        for (int64_t c = 0; c < s->T; c++) {
            int used = 0;
            for (int64_t k = 0; k < n && !used; k++) used = t->pool[feature[k] * s->T + c] != 0.0;
            if (!used) continue;
            for (int64_t k = 0; k < n; k++) s->weights[n_weights++] = t->pool[feature[k] * s->T + c];
            s->nodes[n_nodes++] = c;
        }
    }
    s->first_node[t->n_blocks] = n_nodes, s->first_weight[t->n_blocks] = n_weights;
}

/* Outputs (T, n) of the pool, times the root weights. */
static void pool_outputs(struct search *s)
{
    const struct search_task *t = s->task;
    for (int64_t from = 0; from < s->n; from += SEARCH_ROWS) {
        const real *x = s->inputs + from * t->n_features;
        memset(s->tile, 0, sizeof(real) * s->T * SEARCH_ROWS);
        for (int64_t r = 0; r < SEARCH_ROWS; r += TILE_VECTORS * LANES)
            add_features(&s->blocks, s->weights, x + r, SEARCH_ROWS, s->tile + r, TILE_VECTORS);
        for (int64_t c = 0; c < s->T; c++)
            for (int64_t r = 0; r < SEARCH_ROWS; r += LANES) {
                vec z = *(const vec *)(s->tile + c * SEARCH_ROWS + r);
                vec h = t->logistic ? logistic_of(z) : tanh_of(z);
                *(vec *)(s->outputs + c * s->n + from + r) = h * *(const vec *)(s->root_weights + from + r);
            }
    }
}

/* Rows whose products are formed before the sums are added to each other in double precision. */
#define TOGETHER 512
#define LEFT 4
#define RIGHT (WIDTH == 16 ? 4 : WIDTH == 8 ? 2 : 1)

/* Products over the rows of up to LEFT vectors with up to RIGHT others, added to sums (.., stride). */
static void some_products(const real *const a[LEFT], int64_t n_left, const real *const b[RIGHT], int64_t n_right, int64_t from,
    int64_t to, double *sums, int64_t stride)
{
    vec s[LEFT * RIGHT < LANES ? LANES : LEFT * RIGHT];
    for (int i = 0; i < LEFT * RIGHT; i++) s[i] = all(0);
    for (int64_t r = from; r < to; r += LANES)
        for (int j = 0; j < RIGHT; j++) {
            vec value = *(const vec *)(b[j] + r);
            for (int i = 0; i < LEFT; i++) s[i * RIGHT + j] += value * *(const vec *)(a[i] + r);
        }
    for (int64_t first = 0; first < LEFT * RIGHT; first += LANES) {
        vec sum = totals(s + first);
        for (int k = 0; k < LANES; k++) {
            int64_t i = (first + k) / RIGHT, j = (first + k) % RIGHT;
            if (i < n_left && j < n_right) sums[i * stride + j] += sum[k];
        }
    }
}

/* sums (n_a, stride) = A'B over the rows, for n_a vectors and n_b others, one after the other. */
static void products(const struct search *s, const real *a, int64_t n_a, const real *b, int64_t n_b, double *sums, int64_t stride)
{
    const real *left[LEFT], *right[RIGHT];
    for (int64_t i = 0; i < n_a; i++)
        for (int64_t j = 0; j < n_b; j++) sums[i * stride + j] = 0.0;
    for (int64_t from = 0; from < s->n; from += TOGETHER) {
        int64_t to = from + TOGETHER < s->n ? from + TOGETHER : s->n;
        for (int64_t i = 0; i < n_a; i += LEFT) {
            for (int64_t k = 0; k < LEFT; k++) left[k] = a + (i + k < n_a ? i + k : i) * s->n;
            for (int64_t j = 0; j < n_b; j += RIGHT) {
                for (int64_t k = 0; k < RIGHT; k++) right[k] = b + (j + k < n_b ? j + k : j) * s->n;
                some_products(left, n_a - i, right, n_b - j, from, to, sums + i * stride + j, stride);
            }
        }
    }
}

/* a'b of numbers of double precision. */
static double product(const double *a, const double *b, int64_t n)
{
    double parts[16] = {0.0}, sum = 0.0;
    for (int64_t r = 0; r < n; r += 16)
        for (int i = 0; i < 16; i++) parts[i] += a[r + i] * b[r + i];
    for (int i = 0; i < 16; i++) sum += parts[i];
    return sum;
}

/* Moments, squares and projections of the pool. */
static void score(struct search *s)
{
    struct search_task *t = s->task;
    struct pool_sums *sums = &s->sums;
    for (int64_t j = 0; j < s->q; j++)
        for (int64_t r = 0; r < s->n; r++) s->errors[j * s->n + r] = t->residual[j * s->n + r];
    products(s, s->errors, s->q, s->outputs, s->T, sums->moments, s->T);
    products(s, s->basis, t->size, s->outputs, s->T, sums->projections, s->T);
    for (int64_t c = 0; c < s->T; c++) {
        const real *h = s->outputs + c * s->n;
        vec sum[4] = {all(0), all(0), all(0), all(0)};
        for (int64_t r = 0; r < s->n; r += 4 * LANES)
            for (int i = 0; i < 4; i++) sum[i] += *(const vec *)(h + r + i * LANES) * *(const vec *)(h + r + i * LANES);
        double square = total((sum[0] + sum[1]) + (sum[2] + sum[3]));
        sums->squares[c] = (square < t->least_square ? 0.0 : square) + t->ridge;
    }
}

/* What the new column has on the basis, with the rows of the ridge. */
static void project(struct search *s, double *coefficients)
{
    const struct search_task *t = s->task;
    for (int64_t r = 0; r < s->n; r++) s->column[r] = s->fresh[r];
    products(s, s->basis, t->size, s->column, 1, coefficients, 1);
    for (int64_t l = 0; l < t->size; l++)
        for (int64_t k = 0; k <= l; k++) coefficients[l] += t->ridge_rows[l * t->capacity + k] * s->ridge_row[k];
}

/* Take a combination of the basis off the new column. */
static void remove_part(struct search *s, const double *coefficients)
{
    const struct search_task *t = s->task;
    for (int64_t r = 0; r < s->n; r += 4 * LANES) {
        vec sum[4] = {all(0), all(0), all(0), all(0)};
        for (int64_t l = 0; l < t->size; l++) {
            vec by = all((real)coefficients[l]);
            for (int i = 0; i < 4; i++) sum[i] += by * *(const vec *)(s->basis + l * s->n + r + i * LANES);
        }
        for (int i = 0; i < 4; i++)
            for (int k = 0; k < LANES; k++) s->fresh[r + i * LANES + k] -= sum[i][k];
    }
    for (int64_t l = 0; l < t->size; l++)
        for (int64_t k = 0; k <= l; k++) s->ridge_row[k] -= coefficients[l] * t->ridge_rows[l * t->capacity + k];
}

static double square_of_column(const struct search *s)
{
    double sum = product(s->fresh, s->fresh, s->n);
    for (int64_t k = 0; k <= s->task->size; k++) sum += s->ridge_row[k] * s->ridge_row[k];
    return sum;
}

/* Add a candidate to the basis; 0, and nothing changed, when it depends on the nodes that are there. */
static int append(struct search *s, int64_t candidate)
{
    struct search_task *t = s->task;
    int64_t size = t->size;
    for (int64_t r = 0; r < s->n; r++) s->fresh[r] = s->outputs[candidate * s->n + r];
    memset(s->ridge_row, 0, sizeof(double) * t->capacity);
    s->ridge_row[size] = sqrt(t->ridge);
    double before = square_of_column(s), expected = before;
    project(s, s->coefficients);
    for (int64_t l = 0; l < size; l++) expected -= s->coefficients[l] * s->coefficients[l];
    remove_part(s, s->coefficients);
    if (!(expected > t->project_again_below * before)) {
        project(s, s->again);
        remove_part(s, s->again);
        for (int64_t l = 0; l < size; l++) s->coefficients[l] += s->again[l];
    }
    double after = square_of_column(s);
    if (!(after > t->dependence * before)) return 0;
    double norm = sqrt(after);
    for (int64_t k = 0; k <= size; k++) t->ridge_rows[size * t->capacity + k] = s->ridge_row[k] / norm;
    for (int64_t j = 0; j < s->q; j++) {
        double *e = t->residual + j * s->n, share = product(e, s->fresh, s->n);
        for (int64_t k = 0; k <= size; k++) share += s->ridge_row[k] * t->ridge_residual[k * s->q + j];
        share /= norm;
        for (int64_t r = 0; r < s->n; r++) e[r] -= s->fresh[r] / norm * share;
        for (int64_t k = 0; k <= size; k++) t->ridge_residual[k * s->q + j] -= s->ridge_row[k] / norm * share;
        t->squares[(t->n_added + 1) * s->q + j] = product(e, e, s->n);
    }
    for (int64_t r = 0; r < s->n; r++) s->basis[size * s->n + r] = s->fresh[r] / norm;
    for (int64_t l = 0; l < size; l++) t->factor[l * t->capacity + size] = s->coefficients[l];
    t->factor[size * t->capacity + size] = norm;
    t->added[t->n_added++] = candidate;
    t->size++;
    return 1;
}

/* The products of a candidate with the pool, without what is on the basis already. */
static void gram_row(const void *search, int64_t candidate, double *row)
{
    const struct search *s = search;
    products(s, s->outputs + candidate * s->n, 1, s->outputs, s->T, row, s->T);
    row[candidate] += s->task->ridge;
    for (int64_t l = 0; l < s->task->size; l++) {
        const double *on = s->sums.projections + l * s->T;
        for (int64_t c = 0; c < s->T; c++) row[c] -= on[candidate] * on[c];
    }
}

/* Space for some numbers, whose first byte begins a line of the cache. */
static void *taken(char **space, int64_t n_bytes)
{
    void *here = (void *)(((uintptr_t)*space + 63) / 64 * 64);
    *space = (char *)here + n_bytes;
    return here;
}

#ifdef DOUBLE
void JOINED(add_double_nodes_, WIDTH)(struct search_task *t)
#else
void JOINED(add_nodes_, WIDTH)(struct search_task *t)
#endif
{
    int64_t n = t->n_padded, T = t->n_candidates, q = t->n_outputs, size = sizeof(double);
    struct search s = {t, n, T, q, t->inputs, t->root_weights, t->basis};
    char *space = t->space;
    s.first_node = taken(&space, size * (t->n_blocks + 1)), s.first_weight = taken(&space, size * (t->n_blocks + 1));
    s.nodes = taken(&space, sizeof(int32_t) * t->n_blocks * T);
    s.weights = taken(&space, size * t->n_features * T), s.tile = taken(&space, size * SEARCH_ROWS * T);
    s.outputs = taken(&space, size * n * T), s.errors = taken(&space, size * n * q), s.column = taken(&space, size * n);
    s.fresh = taken(&space, size * n), s.ridge_row = taken(&space, size * t->capacity);
    s.coefficients = taken(&space, size * t->capacity), s.again = taken(&space, size * t->capacity);
    struct pool_sums *sums = &s.sums;
    sums->n_candidates = T, sums->n_outputs = q, sums->n_basis = t->size, sums->gram_row = gram_row, sums->search = &s;
    sums->moments = taken(&space, size * q * T), sums->squares = taken(&space, size * T);
    sums->projections = taken(&space, size * t->capacity * T), sums->space = taken(&space, SELECTION_SPACE(T, q, t->most));
    s.blocks = (struct feature_blocks){t->n_blocks, t->first_feature, s.first_node, s.first_weight, t->features, s.nodes};
    pack(&s);
    pool_outputs(&s);
    score(&s);
    /* Candidates that would need an output weight of the wrong sign have nothing to give. */
    for (int64_t i = 0; t->turns && i < q * T; i++)
        if (sums->moments[i] * t->turns[i % T] < 0.0) sums->moments[i] = 0.0;
    struct selection_limits limits = {t->node, t->most, t->n_contractions, t->contractions, t->dependence, t->ties, t->nothing_left};
    int64_t chosen[t->most], n_chosen;
    t->n_added = 0;
    while (t->n_added == 0 && (n_chosen = select_candidates(sums, t->squares, &limits, chosen, &t->contraction)))
        for (int64_t i = 0; i < n_chosen; i++)
            /* One that depends on present nodes to the precision of the search is out, and the next best come in turn. */
            if (!append(&s, chosen[i]))
                for (int64_t j = 0; j < q; j++) sums->moments[j * T + chosen[i]] = 0.0;
}
