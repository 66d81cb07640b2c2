/* What Python calls. The widest vectors that the processor has are chosen when the library is loaded. */
#include "features.h"
#include "layer.h"
#include "search.h"
#include "selection.h"
#include "shapley.h"
#include "tables.h"
#include "tuning.h"

const char scne_source[] = SOURCE;

/* Numbers that take_steps works in; `n_looked_up` weights stand in rows. */
int64_t scne_space(
    int64_t n_batch, int64_t n_features, int64_t n_nodes, int64_t n_outputs, int64_t n_weights, int64_t n_looked_up)
{
    int64_t looked_up = n_looked_up ? LOOKUP_SPACE(n_batch, n_features, n_nodes, n_looked_up) : 0;
    return STRIDE(n_batch) * (n_features + n_nodes + n_outputs) + 3 * n_weights + 2 * (n_nodes + 1) + 32 + looked_up;
}

int64_t scne_width(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512bw"))
        return 16;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 8;
#endif
    return 4;
}

/* Narrower vectors than the widest can be asked for, to compare them. */
void scne_take_steps(const struct tuning_task *task, int64_t width)
{
#if defined(__x86_64__)
    if (width == 16) { take_steps_16(task); return; }
    if (width == 8) { take_steps_8(task); return; }
#endif
    take_steps_4(task);
}

void scne_take_double_steps(const struct tuning_task *task, int64_t width)
{
#if defined(__x86_64__)
    if (width == 16) { take_double_steps_16(task); return; }
    if (width == 8) { take_double_steps_8(task); return; }
#endif
    take_double_steps_4(task);
}

/* Numbers of double precision that hidden_outputs works in: of the layer with most features and of that with most columns. */
int64_t scne_layer_space(int64_t n_columns, int64_t n_features, int64_t n_nodes, int64_t n_outputs)
{
    return TILE * (n_columns + n_features + n_nodes + n_outputs + NODES_AT_ONCE) + 8;
}

void scne_hidden_outputs(const struct rows_task *task, int64_t width)
{
#if defined(__x86_64__)
    if (width == 16) { hidden_outputs_16(task); return; }
    if (width == 8) { hidden_outputs_8(task); return; }
#endif
    hidden_outputs_4(task);
}

/* Numbers of double precision that shapley_values works in. */
int64_t scne_shapley_space(int64_t n_players)
{
    return 8 * (SHAPLEY_VECTORS * n_players + 1);
}

void scne_shapley_values(const struct shapley_task *task, int64_t width)
{
#if defined(__x86_64__)
    if (width == 16) { shapley_values_16(task); return; }
    if (width == 8) { shapley_values_8(task); return; }
#endif
    shapley_values_4(task);
}

/* Numbers of double precision that table_values works in. */
int64_t scne_table_space(int64_t n_outputs)
{
    return 8 * TABLE_ROWS * n_outputs + 8;
}

int64_t scne_table_values(const struct tables_task *task, int64_t width)
{
#if defined(__x86_64__)
    if (width == 16) return table_values_16(task);
    if (width == 8) return table_values_8(task);
#endif
    return table_values_4(task);
}

void scne_features(const struct features_task *task, int64_t width)
{
#if defined(__x86_64__)
    if (width == 16) { features_16(task); return; }
    if (width == 8) { features_8(task); return; }
#endif
    features_4(task);
}

/* Bytes that add_nodes works in; the last ones are what begins of lines of the cache may cost. */
int64_t scne_search_space(
    int64_t n_padded, int64_t n_features, int64_t n_candidates, int64_t n_outputs, int64_t n_blocks, int64_t capacity, int64_t most)
{
    int64_t T = n_candidates, q = n_outputs, rows = n_padded * (T + q + 2);
    int64_t of_pool = T * (n_features + SEARCH_ROWS + q + 1 + capacity + n_blocks);
    return 8 * (rows + of_pool + 2 * (n_blocks + 1) + 3 * capacity) + SELECTION_SPACE(T, q, most) + 20 * 64;
}

void scne_add_nodes(struct search_task *task, int64_t width)
{
#if defined(__x86_64__)
    if (width == 16) { add_nodes_16(task); return; }
    if (width == 8) { add_nodes_8(task); return; }
#endif
    add_nodes_4(task);
}

void scne_add_double_nodes(struct search_task *task, int64_t width)
{
#if defined(__x86_64__)
    if (width == 16) { add_double_nodes_16(task); return; }
    if (width == 8) { add_double_nodes_8(task); return; }
#endif
    add_double_nodes_4(task);
}
