/* Columns and their ramps, row by row, with the bits of `RampScaling.apply`: NumPy would pass over them five times. */
#include "features.h"
#include "shared.h"

static inline double ramp(const struct features_task *t, const double *raw, int64_t k)
{
    double value = (raw[t->sources[k]] - t->starts[k]) / t->half_widths[k] - 1.0;
    value = value > -1.0 ? value : -1.0;
    return value < 1.0 ? value : 1.0;
}

void JOINED(features_, WIDTH)(const struct features_task *t)
{
    int64_t c = t->n_columns;
    for (int64_t r = 0; r < t->n_rows; r++) {
        const double *restrict plain = t->plain + r * c, *restrict raw = t->raw + r * c;
        if (t->single) {
            float *restrict to = (float *)t->features + r * t->stride;
            for (int64_t j = 0; j < c; j++) to[j] = plain[j];
            for (int64_t k = 0; k < t->n_ramps; k++) to[c + k] = ramp(t, raw, k);
        } else {
            double *restrict to = (double *)t->features + r * t->stride;
            for (int64_t j = 0; j < c; j++) to[j] = plain[j];
            for (int64_t k = 0; k < t->n_ramps; k++) to[c + k] = ramp(t, raw, k);
        }
    }
}
