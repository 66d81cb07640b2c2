/* Activations of vectors, in the precision of vectors.h. */
#ifdef DOUBLE

/* exp(y) - 1 and 2^n for y = n log(2) + r, |r| <= log(2) / 2, with |y| <= 700; the relative error is some units of the
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

static inline vec tanh_of(vec x)
{
    ints sign = (ints)x & (ints)all(-0.0);
    vec e = exp_less_one(2.0 * least((vec)((ints)x ^ sign), all(20.0)));
    return (vec)((ints)(e / (e + 2.0)) | sign);
}

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

#endif

/* phi of `vectors` vectors, in place. */
static inline __attribute__((always_inline, unused)) void activate(vec *z, int vectors, int64_t logistic)
{
    if (logistic)
        for (int c = 0; c < vectors; c++) z[c] = logistic_of(z[c]);
    else
        for (int c = 0; c < vectors; c++) z[c] = tanh_of(z[c]);
}
