/* What a call of scne_features is given; `FeaturesTask` of _kernels.py has the same fields in the same order. */
#ifndef SCNE_FEATURES_H
#define SCNE_FEATURES_H

#include <stdint.h>

struct features_task {
    int64_t n_rows, n_columns, n_ramps;
    int64_t stride;            /* from one row of the features to the next */
    int64_t single;            /* whether features are of single precision */
    const double *plain;       /* (n, c), columns as nodes see them */
    const double *raw;         /* (n, c), columns from which ramps are made */
    const int64_t *sources;    /* (k), the column of each ramp */
    const double *starts;      /* (k), where it begins to rise */
    const double *half_widths; /* (k), half of how far it goes */
    void *features;            /* (n, c + k), columns and then ramps */
};

void features_4(const struct features_task *task);
void features_8(const struct features_task *task);
void features_16(const struct features_task *task);

#endif
