/* What nodes get from the ramps of columns, and the gradients of their weights, where one number of a row stands for all ramps
   of a column (`RampHeights`): the ramp that the row is on and where on it. Of a column a node then takes two numbers from
   registers, and every row is added to the sums of one ramp, not multiplied with all of them. */
#include <immintrin.h>

/* Groups of nodes whose sums over rows are made at a time. */
#define GROUPS_AT_ONCE 4
#define MOST_RAMPS 32

/* table[k] of each lane, from 16 or 32 numbers; `size` is a constant where it is used. */
static inline __attribute__((always_inline)) vec looked_up(vec low, vec high, ints k, int size)
{
    if (size == 16) return (vec)_mm512_permutexvar_ps((__m512i)k, (__m512)low);
    return (vec)_mm512_permutex2var_ps((__m512)low, (__m512i)k, (__m512)high);
}

/* The lanes below each lane added to it. */
static inline vec running_sum(vec w)
{
    __m512i none = _mm512_setzero_si512();
    w += (vec)_mm512_alignr_epi32((__m512i)w, none, 15);
    w += (vec)_mm512_alignr_epi32((__m512i)w, none, 14);
    w += (vec)_mm512_alignr_epi32((__m512i)w, none, 12);
    return w + (vec)_mm512_alignr_epi32((__m512i)w, none, 8);
}

/* Tables of each row of weights: what a node gets in the middle of each ramp, where those before it are 1 and those after it
   -1, and what it gains from there to the end of the ramp, which is the weight. */
static inline __attribute__((always_inline)) void fill_tables_of(const struct steps *s, int size)
{
    const vec *w = (const vec *)s->rows;
    vec *table = (vec *)s->tables;
    for (int64_t row = 0; row < s->task->lookups.n_rows; row++, w += size / LANES, table += 2 * size / LANES) {
        vec up_to[2], sum = all(0);
        for (int i = 0; i < size / LANES; i++) {
            up_to[i] = running_sum(w[i]) + sum;
            sum = (vec)_mm512_permutexvar_ps(_mm512_set1_epi32(LANES - 1), (__m512)up_to[i]);
        }
        for (int i = 0; i < size / LANES; i++) {
            table[i] = (up_to[i] - w[i]) - (sum - up_to[i]);
            table[size / LANES + i] = w[i];
        }
    }
}

static void fill_tables(const struct steps *s)
{
    if (s->task->lookups.size == 16) fill_tables_of(s, 16);
    else fill_tables_of(s, 32);
}

/* Heights become the ramp and the place on it, from -1 to 1. */
static void find_ramps(const struct steps *s)
{
    const struct lookups *looks = &s->task->lookups;
    for (int64_t c = 0; c < looks->n_columns; c++) {
        vec *height = (vec *)(s->x + (looks->first_height + c) * s->stride);
        ints *ramp = (ints *)(s->ramps + c * s->stride);
        vec last = all((real)(looks->n_ramps[c] - 1));
        for (int64_t r = 0; r < s->B / LANES; r++) {
            vec k = (vec)_mm512_roundscale_ps((__m512)(height[r] * 0.5f), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
            k = largest(least(k, last), all(0));
            height[r] = largest(least(height[r] - 2 * k - 1, all(1)), all(-1));
            ramp[r] = (ints)_mm512_cvtps_epi32((__m512)k);
        }
    }
}

/* What a node gets from ramps, added to `vectors` vectors of rows from the r-th on; a constant, as `size` is. */
static inline __attribute__((always_inline)) void add_ramps(
    const struct steps *s, int64_t l, int64_t r, vec *sum, int vectors, int size)
{
    const struct lookups *looks = &s->task->lookups;
    for (int64_t row = looks->first_row[l]; row < looks->first_row[l + 1]; row++) {
        int64_t column = looks->columns[row];
        const vec *table = (const vec *)(s->tables + 2 * row * size);
        const vec *place = (const vec *)(s->x + (looks->first_height + column) * s->stride + r);
        const ints *ramp = (const ints *)(s->ramps + column * s->stride + r);
        vec low = table[0], high = table[size / 16 - 1], low_gain = table[size / 16], high_gain = table[2 * (size / 16) - 1];
        for (int c = 0; c < vectors; c++) {
            sum[c] += looked_up(low, high, ramp[c], size);
            sum[c] += looked_up(low_gain, high_gain, ramp[c], size) * place[c];
        }
    }
}

/* The gradients of the arguments of nodes (L, B) as rows of groups of nodes (groups, B, 16). */
static void turn(const struct steps *s)
{
    const struct lookups *looks = &s->task->lookups;
    for (int64_t g = 0; g < looks->n_groups; g++) {
        const int32_t *lane = looks->lanes + g * LANES;
        vec *to = (vec *)s->turned + g * s->B;
        for (int64_t r = 0; r < s->B; r += LANES) {
            vec square[LANES];
            for (int i = 0; i < LANES; i++) square[i] = lane[i] < 0 ? all(0) : *(const vec *)(s->h + lane[i] * s->stride + r);
            transpose(square);
            for (int i = 0; i < LANES; i++) to[r + i] = square[i];
        }
    }
}

/* Sums over the rows on each ramp of a column, of the gradients of `n` groups of nodes and of these times the place on the
   ramp: (K, 2, n) vectors. How many is a constant where it is used. */
static inline __attribute__((always_inline)) void sums_by_ramp(const struct steps *s, int64_t column, const int32_t *group, int n)
{
    const struct lookups *looks = &s->task->lookups;
    const real *place = s->x + (looks->first_height + column) * s->stride;
    const int32_t *ramp = s->ramps + column * s->stride;
    const vec *from[GROUPS_AT_ONCE];
    for (int g = 0; g < n; g++) from[g] = (const vec *)s->turned + group[g] * s->B;
    vec *sums = (vec *)s->sums;
    for (int64_t i = 0; i < looks->n_ramps[column] * 2 * n; i++) sums[i] = all(0);
    for (int64_t r = 0; r < s->B; r++) {
        vec *to = sums + ramp[r] * 2 * n, by = all(place[r]);
        for (int g = 0; g < n; g++) {
            vec value = from[g][r];
            to[g] += value;
            to[n + g] += by * value;
        }
    }
}

/* The gradients of the weights on the ramps of a column: of each the sum along it, that of the rows beyond its end, and less
   that of the rows before it. */
static void put_gradients(const struct steps *s, int64_t column, const int32_t *rows, int64_t n, int64_t g, real *gradient)
{
    const struct lookups *looks = &s->task->lookups;
    int64_t K = looks->n_ramps[column];
    const vec *sums = (const vec *)s->sums;
    vec total = all(0), before = all(0);
    for (int64_t k = 0; k < K; k++) total += sums[k * 2 * n + g];
    for (int64_t first = 0; first < looks->size; first += LANES) {
        vec square[LANES];
        for (int64_t k = first; k < first + LANES; k++) {
            square[k - first] = all(0);
            if (k >= K) continue;
            vec here = sums[k * 2 * n + g];
            square[k - first] = sums[(k * 2 + 1) * n + g] + ((total - before - here) - before);
            before += here;
        }
        transpose(square);
        for (int i = 0; i < LANES; i++)
            if (rows[i] >= 0) *(vec *)(gradient + rows[i] * looks->size + first) = square[i];
    }
}

static void back_through_ramps(const struct steps *s, real *gradient)
{
    const struct lookups *looks = &s->task->lookups;
    turn(s);
    for (int64_t column = 0; column < looks->n_columns; column++) {
        int64_t last = looks->first_group[column + 1];
        for (int64_t first = looks->first_group[column]; first < last; first += GROUPS_AT_ONCE) {
            int64_t n = last - first < GROUPS_AT_ONCE ? last - first : GROUPS_AT_ONCE;
            const int32_t *group = looks->groups + first;
            if (n == 1) sums_by_ramp(s, column, group, 1);
            else if (n == 2) sums_by_ramp(s, column, group, 2);
            else if (n == 3) sums_by_ramp(s, column, group, 3);
            else sums_by_ramp(s, column, group, 4);
            for (int64_t g = 0; g < n; g++)
                put_gradients(s, column, looks->rows + (first + g) * LANES, n, g, gradient);
        }
    }
}
