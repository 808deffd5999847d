/* What is worth being done in vectors: several products, or several documents, at a time. */

#include <stddef.h>
#include <string.h>

#define ULR_ROWS 3
#define ULR_VECTORS 4
#define ULR_LANES 8
#define ULR_DOCUMENTS 512
#define ULR_FAR 3e38f

#if defined(__GNUC__) && __GNUC__ >= 12 && defined(__x86_64__) && defined(__gnu_linux__)
/* The best instructions of the processor at hand are chosen when the library is loaded. */
#define ULR_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
/* A least of two is a single instruction only if zeros have no sign and no number is missing. */
#define ULR_FINITE \
    __attribute__((optimize("O3,no-trapping-math,finite-math-only,no-signed-zeros")))
#define ULR_HAS_DOTS 1
#else
#define ULR_CLONES
#define ULR_FINITE
#define ULR_HAS_DOTS 0
#endif

#if ULR_HAS_DOTS
typedef float ulr_lanes __attribute__((vector_size(4 * ULR_LANES)));
typedef float ulr_four __attribute__((vector_size(16)));

/* Products of three rows with four vectors, without the copies that a BLAS makes of them. The
 * vectors lie one after another, and so do the products of each row. The rows that come next
 * are fetched meanwhile. */
ULR_CLONES static void ulr_dots(
    const float **rows, const float **next, const float *vectors, ptrdiff_t n, float *dots)
{
    ulr_lanes sums[ULR_ROWS][ULR_VECTORS];
    ptrdiff_t d = 0;
#pragma GCC unroll 3
    for (int r = 0; r < ULR_ROWS; r++)
#pragma GCC unroll 4
        for (int v = 0; v < ULR_VECTORS; v++)
            sums[r][v] = (ulr_lanes){0.0f};
    for (; d + ULR_LANES <= n; d += ULR_LANES) {
        ulr_lanes x, y, z, w;
        if (d % (2 * ULR_LANES) == 0)
#pragma GCC unroll 3
            for (int r = 0; r < ULR_ROWS; r++)
                __builtin_prefetch(next[r] + d);
        memcpy(&x, rows[0] + d, sizeof x);
        memcpy(&y, rows[1] + d, sizeof y);
        memcpy(&z, rows[2] + d, sizeof z);
#pragma GCC unroll 4
        for (int v = 0; v < ULR_VECTORS; v++) {
            memcpy(&w, vectors + v * n + d, sizeof w);
            sums[0][v] += x * w;
            sums[1][v] += y * w;
            sums[2][v] += z * w;
        }
    }
#pragma GCC unroll 3
    for (int r = 0; r < ULR_ROWS; r++) {
        /* Four sums of eight numbers at a time, by adding halves. */
        ulr_four half[ULR_VECTORS], one, other, total;
#pragma GCC unroll 4
        for (int v = 0; v < ULR_VECTORS; v++) {
            ulr_lanes s = sums[r][v];
            half[v] = __builtin_shufflevector(s, s, 0, 1, 2, 3)
                + __builtin_shufflevector(s, s, 4, 5, 6, 7);
        }
        one = __builtin_shufflevector(half[0], half[1], 0, 4, 1, 5)
            + __builtin_shufflevector(half[0], half[1], 2, 6, 3, 7);
        other = __builtin_shufflevector(half[2], half[3], 0, 4, 1, 5)
            + __builtin_shufflevector(half[2], half[3], 2, 6, 3, 7);
        total = __builtin_shufflevector(one, other, 0, 1, 4, 5)
            + __builtin_shufflevector(one, other, 2, 3, 6, 7);
        memcpy(dots + r * ULR_VECTORS, &total, sizeof total);
    }
    for (; d < n; d++)
        for (int r = 0; r < ULR_ROWS; r++)
            for (int v = 0; v < ULR_VECTORS; v++)
                dots[r * ULR_VECTORS + v] += rows[r][d] * vectors[v * n + d];
}
#else
static void ulr_dots(
    const float **rows, const float **next, const float *vectors, ptrdiff_t n, float *dots) {}
#endif

/* Sums of n products, several side by side; of single and double, and of double precision. */
#define ULR_DOT(name, type)                                                                       \
    ULR_CLONES static double name(const type *row, const double *other, ptrdiff_t n)              \
    {                                                                                             \
        double part[2 * ULR_LANES] = {0.0}, total = 0.0;                                          \
        ptrdiff_t d = 0;                                                                          \
        for (; d + 2 * ULR_LANES <= n; d += 2 * ULR_LANES)                                        \
            for (int k = 0; k < 2 * ULR_LANES; k++)                                               \
                part[k] += (double)row[d + k] * other[d + k];                                     \
        for (; d < n; d++)                                                                        \
            total += (double)row[d] * other[d];                                                   \
        for (int k = 0; k < 2 * ULR_LANES; k++)                                                   \
            total += part[k];                                                                     \
        return total;                                                                             \
    }
ULR_DOT(ulr_dot_single, float)
ULR_DOT(ulr_dot_double, double)

#define ULR_ADD(name, type)                                                                       \
    ULR_CLONES static void name(double *total, const type *row, double weight, ptrdiff_t n)       \
    {                                                                                             \
        for (ptrdiff_t d = 0; d < n; d++)                                                         \
            total[d] += weight * row[d];                                                          \
    }
ULR_ADD(ulr_add_single, float)
ULR_ADD(ulr_add_double, double)

/* Turns products of a few documents, at most ULR_DOCUMENTS, with every centroid's slope into
 * distances; the nearest centroid, the first of equal ones, and its lead over the next. */
ULR_CLONES ULR_FINITE static void ulr_two_nearest(
    float *products, ptrdiff_t stride, const float *offsets, ptrdiff_t n_centroids, ptrdiff_t n,
    int *nearest, float *lead)
{
    float best[ULR_DOCUMENTS], second[ULR_DOCUMENTS];
    int label[ULR_DOCUMENTS];
    for (ptrdiff_t j = 0; j < n; j++) {
        best[j] = second[j] = ULR_FAR;
        label[j] = 0;
    }
    for (ptrdiff_t c = 0; c < n_centroids; c++) {
        float *row = products + c * stride, offset = offsets[c];
        for (ptrdiff_t j = 0; j < n; j++) {
            float distance = offset - row[j], least = best[j], next = second[j], worse;
            int before = label[j];
            row[j] = distance;
            label[j] = distance < least ? (int)c : before;
            best[j] = distance < least ? distance : least;
            worse = distance < least ? least : distance;
            second[j] = worse < next ? worse : next;
        }
    }
    for (ptrdiff_t j = 0; j < n; j++) {
        nearest[j] = label[j];
        lead[j] = second[j] - best[j];
    }
}

/* Documents that are no farther ahead than centroids can have come since their lead was known.
 * `widest` and `lowest` are tables of passes and centroids, and `places` places in them. */
ULR_CLONES static ptrdiff_t ulr_suspects(
    ptrdiff_t start, ptrdiff_t stop, const int *places, const float *lead, const float *reach,
    const float *lengths, const float *widest, const float *lowest, float per_length,
    float per_reach, float always, ptrdiff_t *numbers)
{
    ptrdiff_t n = 0;
    for (ptrdiff_t i = start; i < stop; i++) {
        float doubt = lengths[i] * per_length + reach[i] * per_reach + always;
        numbers[n] = i;
        n += widest[places[i]] * reach[i] - lowest[places[i]] + doubt >= lead[i];
    }
    return n;
}

/* How far a document is ahead at least: of all centroids but its own, the least distance that it
 * can have by now, less the distance of its own. */
ULR_CLONES ULR_FINITE static float ulr_least_lead(
    const float *distances, const float *shift, const float *apart, float own_drift, float reach,
    int own, int n_centroids)
{
    float least = ULR_FAR;
    for (int c = 0; c < n_centroids; c++) {
        float left = distances[c] + shift[c] - reach * (apart[c] + own_drift);
        left = c == own ? ULR_FAR : left;
        least = left < least ? left : least;
    }
    return least - (distances[own] + shift[own]);
}

/* How far each of two vectors has gone, and the square of how far apart that has brought them. */
ULR_CLONES static void ulr_subtract(
    const float *now, const float *then, ptrdiff_t n, float *change)
{
    for (ptrdiff_t d = 0; d < n; d++)
        change[d] = now[d] - then[d];
}

ULR_CLONES static float ulr_square_apart(const float *one, const float *other, ptrdiff_t n)
{
    float part[4 * ULR_LANES] = {0.0f}, total = 0.0f;
    ptrdiff_t d = 0;
    for (; d + 4 * ULR_LANES <= n; d += 4 * ULR_LANES)
        for (int k = 0; k < 4 * ULR_LANES; k++) {
            float apart = one[d + k] - other[d + k];
            part[k] += apart * apart;
        }
    for (; d < n; d++)
        total += (one[d] - other[d]) * (one[d] - other[d]);
    for (int k = 0; k < 4 * ULR_LANES; k++)
        total += part[k];
    return total;
}
