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
typedef int ulr_places __attribute__((vector_size(16)));

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

/* Sums of n products, several side by side, in double precision. */
#define ULR_DOT(name, type, other_type)                                                           \
    ULR_CLONES static double name(const type *row, const other_type *other, ptrdiff_t n)          \
    {                                                                                             \
        double part[2 * ULR_LANES] = {0.0}, total = 0.0;                                          \
        ptrdiff_t d = 0;                                                                          \
        for (; d + 2 * ULR_LANES <= n; d += 2 * ULR_LANES)                                        \
            for (int k = 0; k < 2 * ULR_LANES; k++)                                               \
                part[k] += (double)row[d + k] * (double)other[d + k];                             \
        for (; d < n; d++)                                                                        \
            total += (double)row[d] * (double)other[d];                                           \
        for (int k = 0; k < 2 * ULR_LANES; k++)                                                   \
            total += part[k];                                                                     \
        return total;                                                                             \
    }
ULR_DOT(ulr_dot_singles, float, float)
ULR_DOT(ulr_dot_single, float, double)
ULR_DOT(ulr_dot_double, double, double)

/* Moves a row from one sum to another; `from` may be missing. */
#define ULR_MOVE(name, type)                                                                      \
    ULR_CLONES static void name(                                                                  \
        double *from, double *to, const type *row, double weight, ptrdiff_t n)                    \
    {                                                                                             \
        if (from) {                                                                               \
            for (ptrdiff_t d = 0; d < n; d++) {                                                   \
                double moved = weight * row[d];                                                   \
                from[d] -= moved;                                                                 \
                to[d] += moved;                                                                   \
            }                                                                                     \
        } else {                                                                                  \
            for (ptrdiff_t d = 0; d < n; d++)                                                     \
                to[d] += weight * row[d];                                                         \
        }                                                                                         \
    }
ULR_MOVE(ulr_move_single, float)
ULR_MOVE(ulr_move_double, double)

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
 * `steps` and `least` are tables of passes and centroids, and `places` places in them. */
ULR_CLONES static ptrdiff_t ulr_suspects(
    ptrdiff_t start, ptrdiff_t stop, const int *places, const float *lead, const float *reach,
    const float *steps, const float *least, ptrdiff_t *numbers)
{
    ptrdiff_t n = 0;
    for (ptrdiff_t i = start; i < stop; i++) {
        numbers[n] = i;
        n += steps[places[i]] * reach[i] >= lead[i] + least[places[i]];
    }
    return n;
}

#if ULR_HAS_DOTS
static inline ulr_four ulr_choose(ulr_places which, ulr_four one, ulr_four other)
{
    return (ulr_four)(((ulr_places)one & which) | ((ulr_places)other & ~which));
}
#endif

/* How far a document is ahead at least: of all centroids but its own, the least distance that it
 * can have by now, less the distance of its own. `near` may be missing. */
static inline float ulr_least_lead(
    const float *distances, const float *shift, const float *near, const float *apart,
    float own_drift, float reach, int own, int n_centroids)
{
    float least = ULR_FAR, its_own;
    int c = 0;
#if ULR_HAS_DOTS
    const ulr_places places = {0, 1, 2, 3};
    const ulr_four none = {ULR_FAR, ULR_FAR, ULR_FAR, ULR_FAR};
    ulr_four far = none;
    for (; c + 4 <= n_centroids; c += 4) {
        ulr_four left, some;
        memcpy(&left, distances + c, sizeof left);
        memcpy(&some, shift + c, sizeof some);
        left += some;
        if (near) {
            memcpy(&some, near + c, sizeof some);
            left -= some;
        }
        memcpy(&some, apart + c, sizeof some);
        left -= reach * (some + own_drift);
        left = ulr_choose(places + c == own, none, left);
        far = ulr_choose(left < far, left, far);
    }
    far = ulr_choose(
        far < __builtin_shufflevector(far, far, 2, 3, 0, 1), far,
        __builtin_shufflevector(far, far, 2, 3, 0, 1));
    least = far[0] < far[1] ? far[0] : far[1];
#endif
    for (; c < n_centroids; c++) {
        float left = distances[c] + shift[c] - reach * (apart[c] + own_drift);
        if (near)
            left -= near[c];
        if (c != own && left < least)
            least = left;
    }
    its_own = distances[own] + shift[own];
    return least - (near ? its_own - near[own] : its_own);
}

/* What one run of centroids remembers of documents, and how far the centroids have gone. */
typedef struct {
    const int *predictions, *scored_at;
    const float *distances, *lengths, *reach, *its_reach;
    float *lead;
    int *lead_places;
    const float *shift, *pairs, *drift; /* one of the last two is missing */
    float per_length, per_reach, always;
    int n_centroids, forgotten, iteration;
} ulr_run;

/* Makes sure that what is remembered of some documents is at hand soon. */
static inline void ulr_fetch(const ulr_run *run, const ptrdiff_t *numbers, ptrdiff_t n)
{
#if defined(__GNUC__)
    for (ptrdiff_t j = 0; j < n; j++)
        __builtin_prefetch(run->distances + numbers[j] * run->n_centroids);
#endif
}

/* Of some documents those whose label could be another one; others are ahead as of now. `near`
 * has a row of `stride` for each, or is missing. */
ULR_CLONES static ptrdiff_t ulr_undecided(
    const ulr_run *run, ptrdiff_t *numbers, ptrdiff_t n, const float *near, ptrdiff_t stride)
{
    ptrdiff_t n_left = 0, n_centroids = run->n_centroids;
    int place = run->iteration * run->n_centroids;
    for (ptrdiff_t j = 0; j < n; j++) {
        ptrdiff_t i = numbers[j], then = run->scored_at[i];
        int own = run->predictions[i];
        const float *apart = run->pairs ? run->pairs + (then * n_centroids + own) * n_centroids
                                        : run->drift + then * n_centroids;
        float least = ulr_least_lead(
            run->distances + i * n_centroids, run->shift + then * n_centroids,
            near ? near + j * stride : NULL, apart, run->pairs ? 0.0f : apart[own],
            run->its_reach[i], own, run->n_centroids);
        float doubt = run->lengths[i] * run->per_length + run->reach[i] * run->per_reach;
        if (least <= doubt + run->always || run->lead[i] < 0 || then < run->forgotten) {
            numbers[n_left++] = i;
        } else {
            run->lead[i] = least;
            run->lead_places[i] = place + own;
        }
    }
    return n_left;
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
