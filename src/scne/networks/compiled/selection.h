/* Which candidates of a pool become nodes: `select_candidates` of ../_criteria.py for the orthogonal criterion. */
#ifndef SCNE_SELECTION_H
#define SCNE_SELECTION_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Sums over rows for a pool of T candidates; all numbers are of double precision. */
struct pool_sums {
    int64_t n_candidates, n_outputs, n_basis;
    double *moments;     /* (q, T), e'h */
    double *squares;     /* (T), h'h with the ridge */
    double *projections; /* (L, T), Q'h */
    void (*gram_row)(const void *search, int64_t candidate, double *row); /* of what is off the basis, (T) */
    const void *search;
    double *space; /* SELECTION_SPACE bytes */
};

struct selection_limits {
    int64_t node, most, n_contractions;
    const double *contractions;
    double dependence, ties, nothing_left;
};

#define SELECTION_SPACE(T, q, most) ((int64_t)sizeof(double) * ((2 * (q) + 3 + (most)) * (T) + (q)))

/* (1 - r) L / (L + 1), the share of each output's squared error that node L must remove. */
static double required_share(double contraction, int64_t node) { return (1.0 - contraction) * node / (node + 1); }

/* The best share of what is left of every output that a candidate removes; gains are minus infinity where unusable. */
static double best_share(const double *gains, const double *error, int64_t T, int64_t q, double nothing_left)
{
    double best = -INFINITY;
    for (int64_t c = 0; c < T; c++) {
        double least = INFINITY;
        for (int64_t j = 0; j < q; j++)
            if (error[j] > nothing_left && gains[j * T + c] / error[j] < least) least = gains[j * T + c] / error[j];
        if (least > best) best = least;
    }
    return best;
}

/* The sum of xi_q of a candidate; minus infinity where one of them is not positive. */
static double excess_of(const double *gains, const double *error, int64_t c, int64_t T, int64_t q, double share, double nothing_left)
{
    double sum = 0.0;
    int open = 0;
    for (int64_t j = 0; j < q; j++) {
        if (!(error[j] > nothing_left)) continue;
        double xi = gains[j * T + c] - share * error[j];
        if (!(xi > 0.0)) return -INFINITY;
        sum += xi, open = 1;
    }
    return open ? sum : -INFINITY;
}

/* The first of the candidates that are as good as the best; -1 where none is admissible. */
static int64_t first_best(const double *excess, const double *gains, int64_t T, int64_t q, double ties)
{
    int64_t best = 0;
    for (int64_t c = 1; c < T; c++)
        if (excess[c] > excess[best]) best = c;
    if (!isfinite(excess[best])) return -1;
    double sum = 0.0;
    for (int64_t j = 0; j < q; j++) sum += gains[j * T + best];
    for (int64_t c = 0; c < best; c++)
        if (excess[c] >= excess[best] - ties * sum) return c;
    return best;
}

/* Choose up to `most` candidates, best first, and the place of the contraction of the first; returns how many. */
static int64_t select_candidates(
    const struct pool_sums *sums, const double *squared_errors, const struct selection_limits *limits, int64_t *chosen, int64_t *used)
{
    int64_t T = sums->n_candidates, q = sums->n_outputs, n_chosen = 0;
    double *moments = sums->space, *gains = moments + q * T, *left = gains + q * T, *excess = left + T;
    double *usable = excess + T, *directions = usable + T, *error = directions + limits->most * T;
    memcpy(moments, sums->moments, sizeof(double) * q * T);
    memcpy(error, squared_errors, sizeof(double) * q);
    memcpy(left, sums->squares, sizeof(double) * T);
    for (int64_t l = 0; l < sums->n_basis; l++)
        for (int64_t c = 0; c < T; c++) left[c] -= sums->projections[l * T + c] * sums->projections[l * T + c];
    for (int64_t c = 0; c < T; c++) usable[c] = left[c] > limits->dependence * sums->squares[c];
    while (n_chosen < limits->most) {
        int64_t best = -1, node = limits->node + n_chosen, place = 0;
        for (int64_t j = 0; j < q; j++)
            for (int64_t c = 0; c < T; c++) gains[j * T + c] = usable[c] ? moments[j * T + c] * moments[j * T + c] / left[c] : -INFINITY;
        /* One look at the best share spares the inequality for every stricter contraction. */
        double share = best_share(gains, error, T, q, limits->nothing_left) * (1.0 + 1e-9);
        while (place < limits->n_contractions && !(required_share(limits->contractions[place], node) <= share)) place++;
        for (; place < limits->n_contractions && best < 0; place++) {
            double needed = required_share(limits->contractions[place], node);
            for (int64_t c = 0; c < T; c++) excess[c] = excess_of(gains, error, c, T, q, needed, limits->nothing_left);
            best = first_best(excess, gains, T, q, limits->ties);
            if (best >= 0 && n_chosen == 0) *used = place;
        }
        if (best < 0) break;
        chosen[n_chosen++] = best;
        if (n_chosen == limits->most) break;
        /* One step of a pivoted Cholesky factorisation of the pool's residual Gram matrix. */
        double *direction = directions + (n_chosen - 1) * T, root = sqrt(left[best]);
        sums->gram_row(sums->search, best, direction);
        for (int64_t k = 0; k < n_chosen - 1; k++)
            for (int64_t c = 0; c < T; c++) direction[c] -= directions[k * T + best] * directions[k * T + c];
        for (int64_t c = 0; c < T; c++) direction[c] /= root;
        for (int64_t j = 0; j < q; j++) {
            double removed = moments[j * T + best] / root;
            for (int64_t c = 0; c < T; c++) moments[j * T + c] -= removed * direction[c];
            error[j] = error[j] > removed * removed ? error[j] - removed * removed : 0.0;
        }
        for (int64_t c = 0; c < T; c++) {
            left[c] -= direction[c] * direction[c];
            if (!(left[c] > limits->dependence * sums->squares[c])) usable[c] = 0.0;
        }
        usable[best] = 0.0;
    }
    return n_chosen;
}

#endif
