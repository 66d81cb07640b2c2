/* Vectors as wide as WIDTH numbers of single precision: LANES numbers of a type `real`, which is double if DOUBLE is
   defined; `whole` is the integer of its size. */
#include <stdint.h>
#include <string.h>

#ifdef DOUBLE
#define LANES (WIDTH / 2)
typedef double real;
typedef int64_t whole;
#else
#define LANES WIDTH
typedef float real;
typedef int32_t whole;
#endif
typedef real vec __attribute__((vector_size(LANES * sizeof(real)), aligned(sizeof(real))));
typedef whole ints __attribute__((vector_size(LANES * sizeof(whole))));

static inline vec all(real x) { return x - (vec){0}; }
static inline __attribute__((unused)) vec chosen(ints mask, vec a, vec b) { return (vec)((mask & (ints)a) | (~mask & (ints)b)); }

/* Compilers do not see a minimum in `chosen`, which takes four instructions: an activation takes a quarter less this way. */
#if WIDTH == 16 && defined(DOUBLE)
#define OF_PROCESSOR(name) (vec)_mm512_##name##_pd((__m512d)a, (__m512d)b)
#elif WIDTH == 16
#define OF_PROCESSOR(name) (vec)_mm512_##name##_ps((__m512)a, (__m512)b)
#elif WIDTH == 8 && defined(DOUBLE)
#define OF_PROCESSOR(name) (vec)_mm256_##name##_pd((__m256d)a, (__m256d)b)
#elif WIDTH == 8
#define OF_PROCESSOR(name) (vec)_mm256_##name##_ps((__m256)a, (__m256)b)
#endif

#ifdef OF_PROCESSOR
#include <immintrin.h>
static inline vec least(vec a, vec b) { return OF_PROCESSOR(min); }
static inline vec largest(vec a, vec b) { return OF_PROCESSOR(max); }
#else
static inline vec least(vec a, vec b) { return chosen(a < b, a, b); }
static inline vec largest(vec a, vec b) { return chosen(a > b, a, b); }
#endif

/* a / b, and 1 / sqrt(a) of numbers above zero. In single precision the processor's estimates and a step of Newton's method, which
   leave an error of a unit of the last place or two, take a third of the time of its division and of its root. */
#if WIDTH == 16 && !defined(DOUBLE)
static inline __attribute__((unused)) vec quotient(vec a, vec b)
{
    vec inverse = (vec)_mm512_rcp14_ps((__m512)b);
    return a * (inverse * (2 - b * inverse));
}
static inline __attribute__((unused)) vec inverse_root(vec a)
{
    vec root = (vec)_mm512_rsqrt14_ps((__m512)a);
    return root * (1.5f - 0.5f * a * root * root);
}
#else
static inline __attribute__((unused)) vec quotient(vec a, vec b) { return a / b; }
#endif

static inline __attribute__((unused)) real total(vec a)
{
    real parts[LANES];
    memcpy(parts, &a, sizeof parts);
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) parts[i] += parts[i + half];
    return parts[0];
}

/* Shuffles of two vectors, written out for each number of lanes: FIRSTh and OTHERh take turns with blocks of h lanes. */
#if LANES == 16
#define FIRST8(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
#define OTHER8(a, b) __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)
#define FIRST4(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27)
#define OTHER4(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31)
#define FIRST2(a, b) __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define OTHER2(a, b) __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define FIRST1(a, b) __builtin_shufflevector(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30)
#define OTHER1(a, b) __builtin_shufflevector(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31)
#elif LANES == 8
#define FIRST4(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define OTHER4(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#define FIRST2(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define OTHER2(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define FIRST1(a, b) __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define OTHER1(a, b) __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#elif LANES == 4
#define FIRST2(a, b) __builtin_shufflevector(a, b, 0, 1, 4, 5)
#define OTHER2(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7)
#define FIRST1(a, b) __builtin_shufflevector(a, b, 0, 4, 2, 6)
#define OTHER1(a, b) __builtin_shufflevector(a, b, 1, 5, 3, 7)
#else
#define FIRST1(a, b) __builtin_shufflevector(a, b, 0, 2)
#define OTHER1(a, b) __builtin_shufflevector(a, b, 1, 3)
#endif

#define LEVEL(h) for (int i = 0; i < LANES; i += 2 * h) for (int j = i; j < i + h; j++) { \
    vec one = FIRST##h(s[j], s[j + h]), two = OTHER##h(s[j], s[j + h]); s[j] = one; s[j + h] = two; }

/* LANES x LANES numbers with rows and columns exchanged. */
static inline __attribute__((unused)) void transpose(vec s[LANES])
{
#if LANES == 16
    LEVEL(8)
#endif
#if LANES >= 8
    LEVEL(4)
#endif
#if LANES >= 4
    LEVEL(2)
#endif
    LEVEL(1)
}

#define SUM(h) for (int j = 0; j < h; j++) s[j] = FIRST##h(s[j], s[j + h]) + OTHER##h(s[j], s[j + h]);

/* The totals of LANES vectors. */
static inline __attribute__((unused)) vec totals(vec s[LANES])
{
#if LANES == 16
    SUM(8)
#endif
#if LANES >= 8
    SUM(4)
#endif
#if LANES >= 4
    SUM(2)
#endif
    SUM(1)
    return s[0];
}
