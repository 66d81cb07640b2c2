/* Values of the coalitions of nodes, means over a background, from tables of what they are for any sum of the players' parts.
   A cell of a table is a polynomial of eight coefficients, which are one line of the cache: it is loaded as a whole, multiplied by
   the powers of a row, and summed up only once all nodes are there. */
#include "tables.h"
#include "shared.h"

#include <math.h>
#include <string.h>

#define DOUBLE
#include "vectors.h"
#include "activations.h"

typedef double line __attribute__((vector_size(64), aligned(8)));

/* `first` times 1, t, t^2 up to t^7, of t, t^2 and t^4. */
#if WIDTH == 16
static inline line powers(line first, double t, double t2, double t4)
{
    __m512d p = (__m512d)first;
    p = _mm512_mask_mul_pd(p, 0xAA, p, _mm512_set1_pd(t));
    p = _mm512_mask_mul_pd(p, 0xCC, p, _mm512_set1_pd(t2));
    return (line)_mm512_mask_mul_pd(p, 0xF0, p, _mm512_set1_pd(t4));
}
#else
static inline line powers(line first, double t, double t2, double t4)
{
    return first * (line){1, t, 1, t, 1, t, 1, t} * (line){1, 1, t2, t2, 1, 1, t2, t2} * (line){1, 1, 1, 1, t4, t4, t4, t4};
}
#endif

/* Where in its cell each of some rows is, from -1 to 1, with the second and the fourth power, and which cell that is. */
struct found {
    double t[TABLE_ROWS], t2[TABLE_ROWS], t4[TABLE_ROWS];
    int64_t cell[TABLE_ROWS];
} __attribute__((aligned(64)));

/* Finds the cells of a table; whether all of them are there. */
static inline int find_cells(const struct tables_task *t, int64_t table, const vec *sum, struct found *found)
{
    vec lower = all(t->limits[2 * table]), upper = all(t->limits[2 * table + 1]);
    vec least_cell = all(INFINITY), largest_cell = all(-INFINITY);
    ints first = t->firsts[table] - (ints){0}, last = first + t->cells[table] - 1;
    for (int i = 0; i < TABLE_ROWS / LANES; i++) {
        vec x = least(largest(sum[i], lower), upper) * t->per_cell;
        least_cell = least(least_cell, x), largest_cell = largest(largest_cell, x);
        /* The whole part, of numbers below zero too, and from it the place, which so does not depend on the first cell. */
        ints k = __builtin_convertvector(x, ints);
        k += __builtin_convertvector(k, vec) > x;
        k = (ints)chosen(k > last, (vec)last, (vec)k);
        vec place = 2.0 * (x - __builtin_convertvector(k, vec)) - 1.0, square = place * place;
        ((ints *)found->cell)[i] = k - first;
        ((vec *)found->t)[i] = place, ((vec *)found->t2)[i] = square, ((vec *)found->t4)[i] = square * square;
    }
    double from = INFINITY, to = -INFINITY;
    for (int i = 0; i < LANES; i++) {
        from = least_cell[i] < from ? least_cell[i] : from;
        to = largest_cell[i] > to ? largest_cell[i] : to;
    }
    double *reach = t->reach + 2 * table;
    if (from < reach[0]) reach[0] = from;
    if (to > reach[1]) reach[1] = to;
    return from >= (double)t->firsts[table] && to <= (double)(t->firsts[table] + t->cells[table]);
}

/* The sums of some players' parts for a node, or with its bias those of all; rows beyond the last are copies of it. */
static inline void add_parts(const struct tables_task *t, int64_t g, int64_t set, int64_t from, int64_t n, double bias, double *sum)
{
    for (int64_t i = 0; i < n; i++) sum[i] = bias;
    for (int64_t j = 0; j < t->n_players; j++) {
        if (!(set >> j & 1)) continue;
        const double *own = (const double *)t->parts[g * t->n_players + j] + from;
        for (int64_t i = 0; i < n; i++) sum[i] += own[i];
    }
    for (int64_t i = n; i < TABLE_ROWS; i++) sum[i] = sum[n - 1];
}

int64_t JOINED(table_values_, WIDTH)(const struct tables_task *t)
{
    int64_t q = t->n_outputs, n_tables = ((int64_t)1 << t->n_players) - 2, missing = 0;
    line *sums = (line *)(((uintptr_t)t->space + 63) / 64 * 64);
    double *whole = (double *)sums;
    double sum[TABLE_ROWS] __attribute__((aligned(64)));
    struct found f;
    for (int64_t from = 0; from < t->n_rows; from += TABLE_ROWS) {
        int64_t n = t->n_rows - from < TABLE_ROWS ? t->n_rows - from : TABLE_ROWS;
        /* One coalition at a time: its sums stay in the cache while tables come and go. */
        for (int64_t s = 0; s < n_tables; s++) {
            memset(sums, 0, sizeof(line) * q * TABLE_ROWS);
            for (int64_t g = 0; g < t->n_nodes; g++) {
                add_parts(t, g, s + 1, from, n, 0.0, sum);
                if (!find_cells(t, g * n_tables + s, (const vec *)sum, &f)) {
                    missing++;
                    continue;
                }
                const line *cells = (const line *)t->tables[g * n_tables + s];
                line first = (q == 1 ? t->weights[g] : 1.0) - (line){0};
                for (int64_t i = 0; q == 1 && i < n; i++)
                    sums[i] += cells[f.cell[i]] * powers(first, f.t[i], f.t2[i], f.t4[i]);
                for (int64_t i = 0; q > 1 && i < n; i++) {
                    line of_row = cells[f.cell[i]] * powers(first, f.t[i], f.t2[i], f.t4[i]);
                    for (int64_t k = 0; k < q; k++) sums[k * TABLE_ROWS + i] += t->weights[g * q + k] * of_row;
                }
            }
            for (int64_t k = 0; k < q; k++)
                for (int64_t i = 0; i < n; i++) {
                    line row = sums[k * TABLE_ROWS + i];
                    t->values[(s * q + k) * t->n_rows + from + i] =
                        ((row[0] + row[1]) + (row[2] + row[3])) + ((row[4] + row[5]) + (row[6] + row[7]));
                }
        }
        memset(whole, 0, sizeof(double) * q * TABLE_ROWS);
        for (int64_t g = 0; g < t->n_nodes; g++) {
            add_parts(t, g, n_tables + 1, from, n, t->biases[g], sum);
            for (int i = 0; i < TABLE_ROWS / LANES; i++) {
                vec z = ((const vec *)sum)[i];
                z = t->logistic ? logistic_of(-z) : tanh_of(z);
                for (int64_t k = 0; k < q; k++) ((vec *)(whole + k * TABLE_ROWS))[i] += t->weights[g * q + k] * z;
            }
        }
        for (int64_t k = 0; k < q; k++)
            memcpy(t->values + (n_tables * q + k) * t->n_rows + from, whole + k * TABLE_ROWS, sizeof(double) * n);
    }
    return missing;
}
