/* Shapley values of the players of one node, tanh(u / 2) of a sum of one part for each, by a sine series of tanh.
   docs/mathematics.md has the derivation. Vectors run over rows of the background; every row has its own series. */
#include "shapley.h"
#include "shared.h"

#include <math.h>
#include <string.h>

#define DOUBLE
#include "vectors.h"

static const double PI = 3.14159265358979323846;

/* Work space of one pair of rows for each lane: cosine and sine of the angle of each player, of twice the angle, the
   integral over the points, and the sums that become values. */
struct space {
    vec *c, *s, *c2, *s2, *integral, *sum, *before;
};

static inline vec size_of(vec x) { return largest(x, -x); }

/* Cosine and sine of angles between -pi and pi: the series for a quarter of them, doubled twice. */
static inline void circle(vec angle, vec *cosine, vec *sine)
{
    vec r = 0.25 * angle, y = r * r;
    vec s = all(1.0 / 355687428096000.0);
    s = 1.0 / -1307674368000.0 + s * y;
    s = 1.0 / 6227020800.0 + s * y;
    s = 1.0 / -39916800.0 + s * y;
    s = 1.0 / 362880.0 + s * y;
    s = 1.0 / -5040.0 + s * y;
    s = 1.0 / 120.0 + s * y;
    s = 1.0 / -6.0 + s * y;
    s = r + r * y * s;
    vec c = all(1.0 / 20922789888000.0);
    c = 1.0 / -87178291200.0 + c * y;
    c = 1.0 / 479001600.0 + c * y;
    c = 1.0 / -3628800.0 + c * y;
    c = 1.0 / 40320.0 + c * y;
    c = 1.0 / -720.0 + c * y;
    c = 1.0 / 24.0 + c * y;
    c = -0.5 + c * y;
    c = 1.0 + c * y;
    for (int turn = 0; turn < 2; turn++) {
        vec twice = 2.0 * s * c;
        c = 1.0 - 2.0 * s * s;
        s = twice;
    }
    *cosine = c;
    *sine = s;
}

/* Adds to the integrals, for each player, the real part of prod_k (c_k + i tau s_k) over all others, at some points. */
static inline __attribute__((always_inline)) void add_points(
    const struct space *w, int64_t p, const double *tau, const double *weight, int points)
{
    vec re[POINTS_TOGETHER], im[POINTS_TOGETHER];
    for (int i = 0; i < points; i++) re[i] = all(1.0), im[i] = all(0.0);
    for (int64_t k = 0; k < p; k++)
        for (int i = 0; i < points; i++) {
            vec *before = w->before + 2 * (k * POINTS_TOGETHER + i), c = w->c[k], s = tau[i] * w->s[k];
            before[0] = re[i], before[1] = im[i];
            vec next = re[i] * c - im[i] * s;
            im[i] = re[i] * s + im[i] * c;
            re[i] = next;
        }
    for (int i = 0; i < points; i++) re[i] = all(weight[i]), im[i] = all(0.0);
    for (int64_t k = p - 1; k >= 0; k--) {
        vec total = w->integral[k];
        for (int i = 0; i < points; i++) {
            const vec *before = w->before + 2 * (k * POINTS_TOGETHER + i);
            vec c = w->c[k], s = tau[i] * w->s[k];
            total += before[0] * re[i] - before[1] * im[i];
            vec next = re[i] * c - im[i] * s;
            im[i] = re[i] * s + im[i] * c;
            re[i] = next;
        }
        w->integral[k] = total;
    }
}

static void all_points(const struct shapley_task *t, const struct space *w)
{
    const double *tau = t->points, *weight = t->points + t->n_points;
    int64_t p = t->n_players, at = 0;
    for (int64_t k = 0; k < p; k++) w->integral[k] = all(0.0);
    for (; at + 4 <= t->n_points; at += 4) add_points(w, p, tau + at, weight + at, 4);
    if (t->n_points - at == 3) add_points(w, p, tau + at, weight + at, 3);
    if (t->n_points - at == 2) add_points(w, p, tau + at, weight + at, 2);
    if (t->n_points - at == 1) add_points(w, p, tau + at, weight + at, 1);
}

static inline void turn(vec *c, vec *s, vec by_c, vec by_s)
{
    vec next = *c * by_c - *s * by_s;
    *s = *s * by_c + *c * by_s;
    *c = next;
}

/* Adds what LANES rows of the background give to one row. */
static void add_pairs(const struct shapley_task *t, const struct space *w, const double *row, int64_t from)
{
    int64_t p = t->n_players;
    double margin = t->settings[1], tolerance = t->settings[2];
    vec middle = all(2.0 * t->settings[0]), reach = all(0.0);
    for (int64_t k = 0; k < p; k++) {
        vec other = *(const vec *)(t->background + k * t->n_padded + from);
        w->s[k] = row[k] - other;
        reach += size_of(w->s[k]);
        middle += row[k] + other;
    }
    middle *= 0.5;
    reach *= 0.5;
    double counts[LANES];
    for (int i = 0; i < LANES; i++) counts[i] = from + i < t->n_background ? 1.0 : 0.0;
    vec counted;
    memcpy(&counted, counts, sizeof counted);
    /* Where no coalition leaves the flat ends of tanh, nothing moves, and a short series of weight zero is as good. */
    ints flat = size_of(middle) - reach > margin;
    counted = chosen(flat, all(0.0), counted);
    vec period = chosen(flat, all(margin), size_of(middle) + reach + margin), angle = PI / period;
    middle = chosen(flat, all(0.0), middle);
    if (total(counted) == 0.0) return;
    double decays[LANES];
    for (int i = 0; i < LANES; i++) decays[i] = exp(-PI * angle[i]);
    vec decay, power, mc, ms, mc2, ms2;
    memcpy(&power, decays, sizeof power);
    decay = power * power;
    circle(angle * middle, &mc, &ms);
    mc2 = mc * mc - ms * ms, ms2 = 2.0 * mc * ms;
    for (int64_t k = 0; k < p; k++) {
        circle(0.5 * angle * chosen(flat, all(0.0), w->s[k]), &w->c[k], &w->s[k]);
        w->c2[k] = w->c[k] * w->c[k] - w->s[k] * w->s[k], w->s2[k] = 2.0 * w->c[k] * w->s[k];
    }
    for (;;) {
        /* The coefficient of sin(omega u), and of what it is the last but one: the sum of all that follow. */
        vec coefficient = counted * 8.0 * angle * power / (1.0 - power * power);
        ints more = coefficient * decay / (1.0 - decay) > tolerance;
        all_points(t, w);
        vec by = 2.0 * coefficient * mc;
        for (int64_t k = 0; k < p; k++) w->sum[k] += by * w->s[k] * w->integral[k];
        int left = 0;
        for (int i = 0; i < LANES; i++) left |= more[i] != 0;
        if (!left) return;
        turn(&mc, &ms, mc2, ms2);
        for (int64_t k = 0; k < p; k++) turn(&w->c[k], &w->s[k], w->c2[k], w->s2[k]);
        power *= decay;
    }
}

void JOINED(shapley_values_, WIDTH)(const struct shapley_task *t)
{
    int64_t p = t->n_players;
    vec *at = (vec *)(((uintptr_t)t->space + 63) & ~(uintptr_t)63);
    struct space w = {at, at + p, at + 2 * p, at + 3 * p, at + 4 * p, at + 5 * p, at + 6 * p};
    for (int64_t r = 0; r < t->n_rows; r++) {
        for (int64_t k = 0; k < p; k++) w.sum[k] = all(0.0);
        for (int64_t from = 0; from < t->n_background; from += LANES) add_pairs(t, &w, t->rows + r * p, from);
        for (int64_t k = 0; k < p; k++) t->values[r * p + k] = total(w.sum[k]) / (double)t->n_background;
    }
}
