/* Tables that lie in registers, of vectors of eight numbers of double precision. */
#include <immintrin.h>

/* table[k] of each lane; `size` is a constant where it is used. */
static inline __attribute__((always_inline)) vec entries(const double *table, int size, ints k)
{
    if (size == 1) return all(table[0]);
    __m512i at = (__m512i)k;
    __m512d first = _mm512_loadu_pd(table);
    if (size <= 8) return (vec)_mm512_permutexvar_pd(at, first);
    __m512d low = _mm512_permutex2var_pd(first, at, _mm512_loadu_pd(table + 8));
    if (size == 16) return (vec)low;
    __m512d high = _mm512_permutex2var_pd(_mm512_loadu_pd(table + 16), at, _mm512_loadu_pd(table + 24));
    return (vec)_mm512_mask_blend_pd(_mm512_cmpgt_epi64_mask(at, _mm512_set1_epi64(15)), low, high);
}
