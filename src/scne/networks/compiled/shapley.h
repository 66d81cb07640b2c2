/* What a call of shapley_values is given; `ShapleyTask` of _kernels.py has the same fields in the same order. */
#ifndef SCNE_SHAPLEY_H
#define SCNE_SHAPLEY_H

#include <stdint.h>

struct shapley_task {
    int64_t n_rows, n_background, n_padded, n_players, n_points;
    const double *rows;       /* (n, p), parts of the node's sum in each row */
    const double *background; /* (p, n_padded), the same in the background, with copies up to a whole vector */
    const double *settings;   /* bias, the reach of tanh(u / 2) beyond which it is constant, and the error of the series */
    const double *points;     /* (n_points), of a rule on (0, 1), and after them its weights */
    double *values;           /* (n, p), means over the background */
    double *space;
};

/* Vectors of work space for each player, and points whose products are formed side by side. */
#define SHAPLEY_VECTORS 14
#define POINTS_TOGETHER 4

void shapley_values_4(const struct shapley_task *task);
void shapley_values_8(const struct shapley_task *task);
void shapley_values_16(const struct shapley_task *task);

#endif
