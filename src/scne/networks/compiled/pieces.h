/* Ramps of a column that meet end to end: a row is on one of them, those before it are 1 and those after it -1. So a node
   needs two numbers of each column, what it gives in the middle of that ramp and how much it gains from there to the end, and
   takes them from a table in registers. The column itself is in the table too: it is linear along a ramp, but for the few rows
   beyond the ramps or so far out that a logarithm counts, and what these have less or more comes after it. */

/* s + a b, rounded once: the compiler might choose to do so for some numbers of vectors and not for others. */
static inline vec sum_and_product(vec s, vec a, vec b)
{
    return (vec)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)s);
}

/* Of each column (c, TILE): where on its ramp a row is, from -1 to 1; which ramp that is; what the column has beyond it. */
struct pieces {
    const double *plain;
    double *places, *ramps, *beyond;
    int64_t *any_beyond; /* (c) */
};

static inline __attribute__((always_inline)) int find_in(
    const struct layer *t, const struct pieces *p, const double *raw, const double *knots, int size, int64_t n, int64_t vectors,
    int64_t j)
{
    /* Ramps end within the limits of a column. A row that is far beyond must give the bits of one at the limit. */
    vec lower = all(t->lower ? t->lower[j] : -INFINITY), upper = all(t->upper ? t->upper[j] : INFINITY), full = all(*t->full);
    ints outside = {0};
    for (int64_t i = 0; i < vectors; i++) {
        vec value = least(largest(((const vec *)raw)[i], lower), upper), x = ((const vec *)(p->plain + j * TILE))[i];
        ints k = {0};
        for (int64_t m = 1; m < n; m++) k -= (ints)(value >= all(knots[m]));
        vec start = entries(knots, size, k), slope = entries(knots + size, size, k);
        vec middle = entries(knots + 2 * size, size, k), half = entries(knots + 3 * size, size, k);
        vec along = (value - start) * slope - 1.0, place = largest(least(along, all(1.0)), all(-1.0));
        ints here = (along != place) | (x > full) | (x < -full);
        ((vec *)(p->places + j * TILE))[i] = place;
        ((vec *)(p->ramps + j * TILE))[i] = (vec)k;
        ((vec *)(p->beyond + j * TILE))[i] = (vec)(here & (ints)((x - middle) - half * place));
        outside |= here;
    }
    return _mm512_test_epi64_mask((__m512i)outside, (__m512i)outside) != 0;
}

static void find_pieces(const struct layer *t, const double *raw, const struct pieces *p, int64_t vectors)
{
    const double *knots = t->knots;
    for (int64_t j = 0; j < t->n_columns; j++) {
        int64_t n = t->first_ramps[j + 1] - t->first_ramps[j], size = t->sizes[j];
        const double *from = raw + j * TILE;
        int any = 0;
        if (size == 1) any = find_in(t, p, from, knots, 1, n, vectors, j);
        if (size == 4) any = find_in(t, p, from, knots, 4, n, vectors, j);
        if (size == 8) any = find_in(t, p, from, knots, 8, n, vectors, j);
        if (size == 16) any = find_in(t, p, from, knots, 16, n, vectors, j);
        if (size == 32) any = find_in(t, p, from, knots, 32, n, vectors, j);
        p->any_beyond[j] = any;
        knots += 4 * size;
    }
}

/* Adds what a node gains from a column with room for `size` ramps, on `vectors` vectors of rows; both are constants. */
static inline __attribute__((always_inline)) void add_column(
    vec *sum, const double *table, const struct pieces *p, int64_t from, int size, int vectors)
{
    for (int c = 0; c < vectors; c++) {
        ints k = (ints)((const vec *)(p->ramps + from))[c];
        vec half = entries(table + size, size, k);
        /* What a column of one ramp gives in its middle is the same for all rows, and in the bias already. */
        if (size > 1) sum[c] += entries(table, size, k);
        sum[c] = sum_and_product(sum[c], half, ((const vec *)(p->places + from))[c]);
    }
}

/* w'x + b of a node, on `vectors` vectors of rows from `at` on; how many is a constant where it is used. */
static inline __attribute__((always_inline)) void piece_sums(
    const struct layer *t, int64_t l, const struct pieces *p, double *z, int64_t at, int vectors)
{
    const double *table = t->tables + t->first_tables[l];
    vec sum[TILE / LANES];
    for (int c = 0; c < vectors; c++) sum[c] = all(t->biases[t->order[l]]);
    for (int64_t k = t->first[l]; k < t->first[l + 1]; k++) {
        int64_t j = t->features[k], from = j * TILE + at * LANES, size = t->sizes[j];
        switch (size) {
        case 0: break;
        case 1: add_column(sum, table, p, from, 1, vectors); break;
        case 4: add_column(sum, table, p, from, 4, vectors); break;
        case 8: add_column(sum, table, p, from, 8, vectors); break;
        case 16: add_column(sum, table, p, from, 16, vectors); break;
        default: add_column(sum, table, p, from, 32, vectors);
        }
        table += 2 * size;
        if (size && !p->any_beyond[j]) continue;
        const vec *rest = (const vec *)((size ? p->beyond : p->plain) + from);
        for (int c = 0; c < vectors; c++) sum[c] = sum_and_product(sum[c], all(t->weights[k]), rest[c]);
    }
    for (int c = 0; c < vectors; c++) ((vec *)z)[at + c] = sum[c];
}

/* The same of some nodes from l on, to z (n_nodes, TILE). */
static void sums_by_columns(
    const struct layer *t, int64_t l, int64_t n_nodes, const struct pieces *p, double *z, int64_t vectors)
{
    for (int64_t m = 0; m < n_nodes; m++) {
        if (vectors == TILE / LANES) piece_sums(t, l + m, p, z + m * TILE, 0, TILE / LANES);
        else
            for (int64_t at = 0; at < vectors; at++) piece_sums(t, l + m, p, z + m * TILE, at, 1);
    }
}
