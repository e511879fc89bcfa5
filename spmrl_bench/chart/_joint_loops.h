/* The loops of _joint.h for one kind of vector, VECTOR of LANES doubles; included once for each.

   LOAD, STORE, ADD, MAX and REPEAT are its operations, TARGET is the attribute of functions that
   use it, NAMED makes their names. The number of rows and columns are constants wherever a
   function is inlined, so that the maxima stay in registers. */

/* Combine the parts of `rows` x `columns` spans, [i, j) and its neighbours, for splits [k, k_end).

   Words from `w` to `w_end` are done; those of them that no span has are left out, and what else
   is written outside a span is overwritten when the span is attached. */
TARGET INLINED void NAMED(combine)(
    struct joint_chart chart, ptrdiff_t i, int rows, ptrdiff_t j, int columns,
    ptrdiff_t k, ptrdiff_t k_end, ptrdiff_t w, ptrdiff_t w_end)
{
    if (k >= k_end) return;
    w = most(w, i / LANES * LANES);
    w_end = least(w_end, j + columns - 1);
    for (; w < w_end; w += LANES) {
        VECTOR top[ROWS][COLUMNS];
        const double *left[ROWS];
        const double *right = entry(chart, k, j, w);
        for (int r = 0; r < rows; r++) {
            left[r] = entry(chart, i + r, k, w);
            for (int c = 0; c < columns; c++) top[r][c] = LOAD(entry(chart, i + r, j + c, w));
        }
        for (ptrdiff_t split = k; split < k_end; split++) {
            VECTOR part[COLUMNS];
            for (int c = 0; c < columns; c++) part[c] = LOAD(right + c * PANEL);
            for (int r = 0; r < rows; r++) {
                const VECTOR other = LOAD(left[r]);
                for (int c = 0; c < columns; c++) top[r][c] = MAX(top[r][c], ADD(other, part[c]));
                left[r] += PANEL;
            }
            right += (chart.n - split - 1) * PANEL;
        }
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < columns; c++) STORE(entry(chart, i + r, j + c, w), top[r][c]);
    }
}

TARGET static void NAMED(combine_tile)(
    struct joint_chart chart, ptrdiff_t i, ptrdiff_t j,
    ptrdiff_t k, ptrdiff_t k_end, ptrdiff_t w, ptrdiff_t w_end)
{
    NAMED(combine)(chart, i, ROWS, j, COLUMNS, k, k_end, w, w_end);
}

TARGET static void NAMED(combine_column)(
    struct joint_chart chart, ptrdiff_t i, ptrdiff_t j,
    ptrdiff_t k, ptrdiff_t k_end, ptrdiff_t w, ptrdiff_t w_end)
{
    NAMED(combine)(chart, i, ROWS, j, 1, k, k_end, w, w_end);
}

TARGET static void NAMED(combine_span)(
    struct joint_chart chart, ptrdiff_t i, ptrdiff_t j, ptrdiff_t k, ptrdiff_t k_end)
{
    NAMED(combine)(chart, i, 1, j, 1, k, k_end, 0, chart.n);
}

/* Write the entries of `columns` spans [i, j), [i, j + 1) for the words outside. */
TARGET INLINED void NAMED(attach)(
    struct joint_chart chart, ptrdiff_t i, ptrdiff_t j, int columns)
{
    for (ptrdiff_t g = 0; g < chart.n; g += PANEL) {
        if (g >= i && g + PANEL <= j) continue;  /* all inside */
        VECTOR top[COLUMNS][PANEL / LANES];
        for (int c = 0; c < columns; c++)
            for (int v = 0; v < PANEL / LANES; v++) top[c][v] = REPEAT(-INFINITY);
        const double *arc = chart.arcs + (g / PANEL * chart.n + i) * PANEL;
        const double *dependent = chart.dependents + i;
        for (ptrdiff_t d = i; d < j + columns - 1; d++, arc += PANEL, dependent++) {
            for (int v = 0; v < PANEL / LANES; v++) {
                const VECTOR part = LOAD(arc + v * LANES);
                for (int c = 0; c < columns; c++)
                    top[c][v] = MAX(top[c][v], ADD(part, REPEAT(dependent[c * chart.n])));
            }
        }
        for (int c = 0; c < columns; c++) {
            double *const lanes = entry(chart, i, j + c, g);
            if (g + PANEL <= i || g >= j + c) {
                for (int v = 0; v < PANEL / LANES; v++) STORE(lanes + v * LANES, top[c][v]);
                continue;
            }
            double some[PANEL];
            for (int v = 0; v < PANEL / LANES; v++) STORE(some + v * LANES, top[c][v]);
            for (int x = 0; x < PANEL; x++)
                if (g + x < i || g + x >= j + c) lanes[x] = some[x];
        }
    }
}

/* Finish the span [i, j), the parts of which have been combined. */
TARGET static void NAMED(finish_span)(struct joint_chart chart, ptrdiff_t i, ptrdiff_t j)
{
    label_span(chart, i, j, chart.dependents);
    NAMED(attach)(chart, i, j, 1);
}

/* Finish [i, j) and [i, j + 1), which lack the splits from i + 1 to k_end, and one another. */
TARGET static void NAMED(finish_pair)(
    struct joint_chart chart, ptrdiff_t i, ptrdiff_t j, ptrdiff_t k_end)
{
    NAMED(combine)(chart, i, 1, j, COLUMNS, i + 1, k_end, 0, chart.n);
    label_span(chart, i, j, chart.dependents);
    /* All that the second needs of the first are its heads and its entry for word j. */
    attach_to(chart, i, j, chart.dependents, j);
    chart.dependents[j] = -INFINITY;
    NAMED(combine_span)(chart, i, j + 1, j, j + 1);
    label_span(chart, i, j + 1, chart.dependents + chart.n);
    NAMED(attach)(chart, i, j, COLUMNS);
}

/* Combine the spans from rows [i, i + BLOCK) to columns [j, j_end) for splits between the two. */
TARGET static void NAMED(combine_block)(
    struct joint_chart chart, ptrdiff_t i, ptrdiff_t j, ptrdiff_t j_end)
{
    for (ptrdiff_t w = i / PANEL * PANEL; w < j_end - 1; w += PANEL) {
        for (ptrdiff_t k = i + BLOCK; k < j; k += STEPS) {
            const ptrdiff_t k_end = least(k + STEPS, j);
            for (ptrdiff_t row = i; row < i + BLOCK; row += ROWS) {
                ptrdiff_t column = j;
                for (; column + 1 < j_end; column += COLUMNS)
                    NAMED(combine_tile)(chart, row, column, k, k_end, w, w + PANEL);
                if (column < j_end)
                    NAMED(combine_column)(chart, row, column, k, k_end, w, w + PANEL);
            }
        }
    }
}

/* Finish the spans from rows [i, i_end) to columns [j, j_end), i < j.

   Either i_end < j, or it is the triangle of the spans that begin and end in one block. */
TARGET static void NAMED(finish_block)(
    struct joint_chart chart, ptrdiff_t i, ptrdiff_t i_end, ptrdiff_t j, ptrdiff_t j_end)
{
    clear_spans(chart, i, i_end, j, j_end);
    if (i_end < j) NAMED(combine_block)(chart, i, j, j_end);
    /* What is left are splits among the rows, before `i_end`, and among the columns, from `late`. */
    const ptrdiff_t late = most(j, i_end);
    for (ptrdiff_t column = j; column < j_end; column += COLUMNS) {
        for (ptrdiff_t row = (i_end - 1) / ROWS * ROWS; row >= i; row -= ROWS) {
            const ptrdiff_t row_end = least(row + ROWS, i_end);
            if (column > row + ROWS && column + 1 < j_end) {
                const ptrdiff_t early = least(i_end, column);
                NAMED(combine_tile)(chart, row, column, row_end, early, 0, chart.n);
                NAMED(combine_tile)(chart, row, column, late, column, 0, chart.n);
                for (ptrdiff_t left = row_end - 1; left >= row; left--)
                    NAMED(finish_pair)(chart, left, column, row_end);
                continue;
            }
            for (ptrdiff_t right = column; right < least(column + COLUMNS, j_end); right++) {
                for (ptrdiff_t left = least(row_end, right) - 1; left >= row; left--) {
                    if (right - left == 1) *entry(chart, left, right, left) = 0;
                    NAMED(combine_span)(chart, left, right, left + 1, least(i_end, right));
                    NAMED(combine_span)(chart, left, right, late, right);
                    NAMED(finish_span)(chart, left, right);
                }
            }
        }
    }
}

TARGET static void NAMED(fill)(struct joint_chart chart)
{
    const ptrdiff_t n = chart.n;
    for (ptrdiff_t i = (n - 1) / BLOCK * BLOCK; i >= 0; i -= BLOCK) {
        const ptrdiff_t i_end = least(i + BLOCK, n);
        NAMED(finish_block)(chart, i, i_end, i + 1, i_end + 1);
        for (ptrdiff_t j = i_end + 1; j <= n; j += BLOCK)
            NAMED(finish_block)(chart, i, i_end, j, least(j + BLOCK, n + 1));
    }
}

#undef VECTOR
#undef LOAD
#undef STORE
#undef ADD
#undef MAX
#undef REPEAT
#undef LANES
#undef TARGET
#undef NAMED
