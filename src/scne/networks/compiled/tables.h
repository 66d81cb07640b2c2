/* What a call of table_values is given; `TablesTask` of _kernels.py has the same fields in the same order. */
#ifndef SCNE_TABLES_H
#define SCNE_TABLES_H

#include <stdint.h>

/* Nodes that read the same p players. Their coalitions are numbers from 1 to 2^p - 1, of which bit j says whether player j is
   in it; all but the last, which has everybody, have tables. */
struct tables_task {
    int64_t n_rows, n_nodes, n_players, n_outputs, logistic;
    const int64_t *parts;   /* (G, p), addresses of (n) numbers: what each player gives to the node's sum */
    const int64_t *tables;  /* (G, 2^p - 2), addresses of (cells, 8): in each cell a polynomial of where it is between -1 and 1 */
    const int64_t *firsts;  /* (G, 2^p - 2), the first cell */
    const int64_t *cells;   /* (G, 2^p - 2), how many there are */
    const double *limits;   /* (G, 2^p - 2, 2), to which sums are limited */
    const double *biases;   /* (G) */
    const double *weights;  /* (G, q) */
    double *values;         /* (2^p - 1, q, n), sums over the nodes of their weights times their values */
    double *reach;          /* (G, 2^p - 2, 2), the least and the largest cell that was asked for, as found so far */
    double *space;
    double per_cell;        /* one over the width of a cell */
};

/* Rows at a time. */
#define TABLE_ROWS 512

/* How many tables do not have all cells that were asked for: `values` then means nothing. */
int64_t table_values_4(const struct tables_task *task);
int64_t table_values_8(const struct tables_task *task);
int64_t table_values_16(const struct tables_task *task);

#endif
