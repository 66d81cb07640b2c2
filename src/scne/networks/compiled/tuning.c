/* Steps of tuning, as `tune_nodes` of ../_tuning.py takes them, for one output or several, with or without weights of rows.

   Compiled once for each width of vectors (WIDTH numbers of single precision); kernels.c chooses. A batch lies feature by
   feature (d, B), so that a node reads the rows of its own features alone: forward it adds them up, backward it takes
   their products with the errors. Four nodes on the same features go together, which reads each feature once for four.
   Sums run in a fixed order: the same processor gives the same bits. */
#include "tuning.h"

#include <math.h>
#include <string.h>

#define LANES WIDTH
typedef float real;
typedef int32_t whole;
#include "vectors.h"

/* x P(x^2) / Q(x^2), relative error below 4e-7; beyond 9.02 the value is 1 in single precision. */
static inline vec tanh_of(vec x)
{
    x = largest(least(x, all(9.02f)), all(-9.02f));
    vec t = x * x;
    vec p = (((all(1.33190943e-08f) * t + 2.05835029e-05f) * t + 3.49403612e-03f) * t + 1.33797193e-01f) * t + 9.99999979e-01f;
    vec q = (((all(7.76203018e-07f) * t + 3.28309522e-04f) * t + 2.58710794e-02f) * t + 4.67130346e-01f) * t + 1.0f;
    return largest(least(x * p / q, all(1.0f)), all(-1.0f));
}

/* 1 / (1 + exp(x)), as precise in its lower tail. exp(x) = 2^n e^r with |r| <= log(2) / 2. */
static inline vec logistic_of(vec x)
{
    x = largest(least(x, all(87.0f)), all(-87.0f));
    vec shifted = x * 1.44269504f + 12582912.0f;
    ints n = (ints)shifted - 0x4B400000;
    vec k = shifted - 12582912.0f;
    vec r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
    vec e = (((((all(1.0f / 720) * r + 1.0f / 120) * r + 1.0f / 24) * r + 1.0f / 6) * r + 0.5f) * r + 1.0f) * r + 1.0f;
    e = e * (vec)((n + 127) << 23);
    return 1.0f / (1.0f + e);
}

/* Vectors of rows that are summed up at a time: of one node, and of each of four. */
#define VECTORS_OF_ONE 8
#define VECTORS_OF_FOUR 4

/* z = sum_k w_k x_k over the features of one node, from row `r` on. */
static void add_features(const float *x, int64_t B, const int32_t *feature, const float *w, int64_t n, float *z)
{
    int64_t r = 0;
    for (; r + VECTORS_OF_ONE * WIDTH <= B; r += VECTORS_OF_ONE * WIDTH) {
        vec sum[VECTORS_OF_ONE];
        for (int c = 0; c < VECTORS_OF_ONE; c++) sum[c] = all(0.0f);
        for (int64_t k = 0; k < n; k++) {
            const vec *from = (const vec *)(x + feature[k] * B + r);
            vec by = all(w[k]);
            for (int c = 0; c < VECTORS_OF_ONE; c++) sum[c] += by * from[c];
        }
        for (int c = 0; c < VECTORS_OF_ONE; c++) ((vec *)(z + r))[c] = sum[c];
    }
    for (; r < B; r += WIDTH) {
        vec sum = all(0.0f);
        for (int64_t k = 0; k < n; k++) sum += all(w[k]) * *(const vec *)(x + feature[k] * B + r);
        *(vec *)(z + r) = sum;
    }
}

/* The same for four nodes on the same features. */
static void add_features_of_four(
    const float *x, int64_t B, const int32_t *feature, const float *const w[NODES_TOGETHER], int64_t n, float *z)
{
    int64_t r = 0;
    for (; r + VECTORS_OF_FOUR * WIDTH <= B; r += VECTORS_OF_FOUR * WIDTH) {
        vec sum[NODES_TOGETHER][VECTORS_OF_FOUR];
        for (int m = 0; m < NODES_TOGETHER; m++)
            for (int c = 0; c < VECTORS_OF_FOUR; c++) sum[m][c] = all(0.0f);
        for (int64_t k = 0; k < n; k++) {
            const vec *from = (const vec *)(x + feature[k] * B + r);
            for (int m = 0; m < NODES_TOGETHER; m++) {
                vec by = all(w[m][k]);
                for (int c = 0; c < VECTORS_OF_FOUR; c++) sum[m][c] += by * from[c];
            }
        }
        for (int m = 0; m < NODES_TOGETHER; m++)
            for (int c = 0; c < VECTORS_OF_FOUR; c++) ((vec *)(z + m * B + r))[c] = sum[m][c];
    }
    for (; r < B; r += WIDTH)
        for (int m = 0; m < NODES_TOGETHER; m++) {
            vec sum = all(0.0f);
            for (int64_t k = 0; k < n; k++) sum += all(w[m][k]) * *(const vec *)(x + feature[k] * B + r);
            *(vec *)(z + m * B + r) = sum;
        }
}

/* a'b over the rows. */
static float product(const float *a, const float *b, int64_t B)
{
    vec sum = all(0.0f);
    for (int64_t r = 0; r < B; r += WIDTH) sum += *(const vec *)(a + r) * *(const vec *)(b + r);
    return total(sum);
}

/* Products of the rows of up to WIDTH features with b: `some` of them are computed, `used` kept. */
static inline __attribute__((always_inline)) void some_products(
    const float *x, int64_t B, const int32_t *feature, int some, int64_t used, const float *b, float *gradient)
{
    vec s[WIDTH];
    const float *from[WIDTH];
    for (int i = 0; i < WIDTH; i++) s[i] = all(0.0f);
    for (int i = 0; i < some; i++) from[i] = x + feature[i < used ? i : 0] * B;
    for (int64_t r = 0; r < B; r += WIDTH) {
        vec by = *(const vec *)(b + r);
        for (int i = 0; i < some; i++) s[i] += by * *(const vec *)(from[i] + r);
    }
    vec sum = totals(s);
    memcpy(gradient, &sum, used * sizeof(float));
}

static void products(const float *x, int64_t B, const int32_t *feature, int64_t n, const float *b, float *gradient)
{
    int64_t k = 0;
    for (; k + WIDTH <= n; k += WIDTH) some_products(x, B, feature + k, WIDTH, WIDTH, b, gradient + k);
    if (n - k > WIDTH / 2) some_products(x, B, feature + k, WIDTH, n - k, b, gradient + k);
    else if (n - k > WIDTH / 4) some_products(x, B, feature + k, WIDTH / 2, n - k, b, gradient + k);
    else if (n > k) some_products(x, B, feature + k, WIDTH / 4, n - k, b, gradient + k);
}

#define FEATURES_OF_FOUR (WIDTH / NODES_TOGETHER)
static void products_of_four(
    const float *x, int64_t B, const int32_t *feature, int64_t n, const float *b, float *const gradient[NODES_TOGETHER])
{
    for (int64_t k = 0; k < n; k += FEATURES_OF_FOUR) {
        int used = n - k < FEATURES_OF_FOUR ? n - k : FEATURES_OF_FOUR;
        vec s[WIDTH];
        const float *from[FEATURES_OF_FOUR];
        for (int i = 0; i < FEATURES_OF_FOUR; i++) from[i] = x + feature[i < used ? k + i : k] * B;
        for (int i = 0; i < WIDTH; i++) s[i] = all(0.0f);
        for (int64_t r = 0; r < B; r += WIDTH)
            for (int i = 0; i < FEATURES_OF_FOUR; i++) {
                vec value = *(const vec *)(from[i] + r);
                for (int m = 0; m < NODES_TOGETHER; m++) s[m * FEATURES_OF_FOUR + i] += value * *(const vec *)(b + m * B + r);
            }
        vec sum = totals(s);
        for (int m = 0; m < NODES_TOGETHER; m++) memcpy(gradient[m] + k, (float *)&sum + m * FEATURES_OF_FOUR, used * sizeof(float));
    }
}

/* The rows of a batch, feature by feature. */
static void gather(const struct tuning_task *t, const int64_t *places, int64_t B, float *x)
{
    int64_t d = t->n_features, n = t->n_batch, whole = d < WIDTH ? 0 : n / WIDTH * WIDTH;
    for (int64_t r = 0; r < whole; r += WIDTH) {
        const float *from[WIDTH];
        for (int i = 0; i < WIDTH; i++) from[i] = t->inputs + places[r + i] * d;
        for (int64_t first = 0; first < d; first += WIDTH) {
            int64_t k = first + WIDTH > d ? d - WIDTH : first;
            vec s[WIDTH];
            for (int i = 0; i < WIDTH; i++) s[i] = *(const vec *)(from[i] + k);
            transpose(s);
            for (int i = 0; i < WIDTH; i++) *(vec *)(x + (k + i) * B + r) = s[i];
        }
    }
    for (int64_t r = whole; r < n; r++) {
        const float *from = t->inputs + places[r] * d;
        for (int64_t k = 0; k < d; k++) x[k * B + r] = from[k];
    }
}

/* Whether four nodes from l on look at the same features. */
static int alike(const struct tuning_task *t, int64_t l)
{
    if (l + NODES_TOGETHER > t->n_nodes) return 0;
    int64_t n = t->first[l + 1] - t->first[l];
    for (int m = 1; m < NODES_TOGETHER; m++) {
        if (t->first[l + m + 1] - t->first[l + m] != n) return 0;
        if (memcmp(t->features + t->first[l], t->features + t->first[l + m], n * sizeof(int32_t))) return 0;
    }
    return 1;
}

/* h = phi(x'w) of all nodes, (L, B), and the outputs (q, B). */
static void forward(const struct tuning_task *t, int64_t B, const float *x, const float *beta, float *h, float *output)
{
    int64_t q = t->n_outputs;
    memset(output, 0, sizeof(float) * q * B);
    for (int64_t l = 0, next; l < t->n_nodes; l = next) {
        const int32_t *feature = t->features + t->first[l];
        int64_t n = t->first[l + 1] - t->first[l];
        if (alike(t, l)) {
            const float *w[NODES_TOGETHER];
            for (int m = 0; m < NODES_TOGETHER; m++) w[m] = t->weights + t->first[l + m];
            add_features_of_four(x, B, feature, w, n, h + l * B);
            next = l + NODES_TOGETHER;
        } else {
            add_features(x, B, feature, t->weights + t->first[l], n, h + l * B);
            next = l + 1;
        }
        for (int64_t m = l; m < next; m++) {
            vec *out = (vec *)(h + m * B);
            for (int64_t r = 0; r < B / WIDTH; r++) out[r] = t->logistic ? logistic_of(out[r]) : tanh_of(out[r]);
            for (int64_t j = 0; j < q; j++) {
                vec by = all(beta[m * q + j]), *to = (vec *)(output + j * B);
                for (int64_t r = 0; r < B / WIDTH; r++) to[r] += by * out[r];
            }
        }
    }
}

/* Outputs become the gradient of the loss: 2 (f - y) over the rows, times their weights; rows that only fill up get zero. */
static void errors(const struct tuning_task *t, int64_t B, const int64_t *places, float *output)
{
    int64_t q = t->n_outputs;
    for (int64_t r = 0; r < B; r++)
        for (int64_t j = 0; j < q; j++) {
            float *error = output + j * B + r;
            if (r >= t->n_batch) {
                *error = 0.0f;
                continue;
            }
            float root = t->root_weights ? t->root_weights[places[r]] : 1.0f;
            *error = (*error * root - t->targets[places[r] * q + j]) * root * t->scale;
        }
}

/* The gradients of all weights; b is space for four nodes. */
static void backward(const struct tuning_task *t, int64_t B, const float *x, const float *h, const float *error,
    const float *beta, float *b, float *gradient)
{
    int64_t q = t->n_outputs, n_inner = t->first[t->n_nodes];
    for (int64_t l = 0, next; l < t->n_nodes; l = next) {
        const int32_t *feature = t->features + t->first[l];
        int64_t n = t->first[l + 1] - t->first[l];
        int four = alike(t, l);
        next = l + (four ? NODES_TOGETHER : 1);
        for (int64_t m = l; m < next; m++) {
            const vec *out = (const vec *)(h + m * B);
            vec *back = (vec *)(b + (m - l) * B);
            for (int64_t r = 0; r < B / WIDTH; r++) {
                vec sum = all(0.0f), value = out[r];
                for (int64_t j = 0; j < q; j++) sum += all(beta[m * q + j]) * ((const vec *)(error + j * B))[r];
                back[r] = sum * (t->logistic ? value * (value - 1.0f) : 1.0f - value * value);
            }
            for (int64_t j = 0; j < q; j++) gradient[n_inner + m * q + j] = product(h + m * B, error + j * B, B);
        }
        if (four) {
            float *to[NODES_TOGETHER];
            for (int m = 0; m < NODES_TOGETHER; m++) to[m] = gradient + t->first[l + m];
            products_of_four(x, B, feature, n, b, to);
        } else
            products(x, B, feature, n, b, gradient + t->first[l]);
    }
}

/* A step of Adam on some of the weights. */
static void move(const struct tuning_task *t, int64_t step, int64_t from, int64_t to, float rate, const float *gradient)
{
    float *restrict w = t->weights, *restrict mean = t->means, *restrict square = t->squares;
    const float *restrict g = gradient;
    float new_mean = 1.0f - t->mean_decay, new_square = 1.0f - t->square_decay, root = t->roots[step];
    float by = t->moves[step] * rate, tiny = t->no_division_by_zero;
    for (int64_t k = from; k < to; k++) {
        mean[k] += (g[k] - mean[k]) * new_mean;
        square[k] += (g[k] * g[k] - square[k]) * new_square;
        w[k] -= mean[k] / (sqrtf(square[k]) * root + tiny) * by;
    }
}

void JOINED(take_steps_, WIDTH)(const struct tuning_task *t)
{
    int64_t B = PADDED(t->n_batch), n_inner = t->first[t->n_nodes], n_all = n_inner + t->n_nodes * t->n_outputs;
    float *x = t->space, *h = x + t->n_features * B, *error = h + t->n_nodes * B;
    float *b = error + t->n_outputs * B, *gradient = b + NODES_TOGETHER * B;
    const float *beta = t->weights + n_inner;
    memset(x, 0, sizeof(float) * t->n_features * B);
    for (int64_t step = 0; step < t->n_steps; step++) {
        const int64_t *places = t->places + step * t->n_batch;
        gather(t, places, B, x);
        forward(t, B, x, beta, h, error);
        errors(t, B, places, error);
        backward(t, B, x, h, error, beta, b, gradient);
        move(t, step, 0, n_inner, t->input_rate, gradient);
        move(t, step, n_inner, n_all, t->output_rate, gradient);
    }
}
