/* Activations of vectors, in the precision of vectors.h. */
#ifdef DOUBLE

/* exp(y) - 1 for y = n log(2) + r, |r| <= log(2) / 2, with |y| <= 700; the relative error is some units of the
   last place, near zero too: n is zero there, and the series has no constant term. */
static inline vec exp_less_one(vec y)
{
    vec shifted = y * 1.4426950408889634 + 6755399441055744.0;
    vec n = shifted - 6755399441055744.0;
    vec r = (y - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    vec p = all(1.0 / 6227020800.0);
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = (p * r) * r + r;
    /* The low bits of `shifted` are n. */
    vec power = (vec)(((ints)shifted + 1023) << 52);
    return p * power + (power - 1.0);
}

#if WIDTH == 16
#include "lookups.h"

/* 2^(i / 16) - 1 */
static const double roots_less_one[16] = {
    0.0, 0.04427378242741384, 0.09050773266525766, 0.13878863475669165,
    0.18920711500272105, 0.24185781207348406, 0.29683955465100964, 0.3542555469368927,
    0.41421356237309503, 0.4768261459394993, 0.5422108254079409, 0.6104903319492543,
    0.6817928305074291, 0.7562521603732995, 0.8340080864093424, 0.9152065613971473,
};

/* exp(2 |x|) = 2^n 2^(i / 16) exp(2 r) with |r| <= log(2) / 64, where a short series is enough. For exp(2 r) 2^(i / 16) = 1 + q
   the value is (q + 1 - 2^-n) / (q + 1 + 2^-n), in which nothing cancels. */
static inline vec tanh_of(vec x)
{
    ints sign = (ints)x & (ints)all(-0.0);
    vec size = least((vec)((ints)x ^ sign), all(20.0));
    vec shifted = size * 46.16624130844683 + 6755399441055744.0;
    vec r = size - (shifted - 6755399441055744.0) * 0.02166084939249829;
    vec p = all(8.0 / 315.0);
    p = p * r + 4.0 / 45.0;
    p = p * r + 4.0 / 15.0;
    p = p * r + 2.0 / 3.0;
    p = p * r + 4.0 / 3.0;
    p = p * r + 2.0;
    p = p * r + 2.0;
    /* The low bits of `shifted` are 16 n + i. */
    vec root = entries(roots_less_one, 16, (ints)shifted), q = (p * r) * (root + 1.0) + root;
    vec power = (vec)(((ints)all(1.0)) - (((ints)shifted >> 4) << 52));
    return (vec)((ints)((q + (1.0 - power)) / (q + (1.0 + power))) | sign);
}
#else
static inline vec tanh_of(vec x)
{
    ints sign = (ints)x & (ints)all(-0.0);
    vec e = exp_less_one(2.0 * least((vec)((ints)x ^ sign), all(20.0)));
    return (vec)((ints)(e / (e + 2.0)) | sign);
}
#endif

/* 1 / (1 + exp(x)), as precise in its lower tail. */
static inline vec logistic_of(vec x)
{
    return 1.0 / (2.0 + exp_less_one(largest(least(x, all(700.0)), all(-40.0))));
}

#else

/* x P(x^2) / Q(x^2), relative error below 4e-7; beyond 9.02 the value is 1 in single precision. */
static inline vec tanh_of(vec x)
{
    x = largest(least(x, all(9.02f)), all(-9.02f));
    vec t = x * x;
    vec p = (((all(1.33190943e-08f) * t + 2.05835029e-05f) * t + 3.49403612e-03f) * t + 1.33797193e-01f) * t + 9.99999979e-01f;
    vec q = (((all(7.76203018e-07f) * t + 3.28309522e-04f) * t + 2.58710794e-02f) * t + 4.67130346e-01f) * t + 1.0f;
    return largest(least(quotient(x * p, q), all(1.0f)), all(-1.0f));
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
    return quotient(all(1.0f), 1.0f + e);
}

#endif

/* phi of `vectors` vectors, in place. */
static inline __attribute__((always_inline, unused)) void activate(vec *z, int vectors, int64_t logistic)
{
    if (logistic)
        for (int c = 0; c < vectors; c++) z[c] = logistic_of(z[c]);
    else
        for (int c = 0; c < vectors; c++) z[c] = tanh_of(z[c]);
}
