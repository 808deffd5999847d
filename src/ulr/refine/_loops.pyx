# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""The innermost loops of the passes; each says where the same is done in NumPy, and why.

They trust what they are given. Rows may lie apart, but the numbers of a row lie side by side.
"""

import numpy as np

from libc.math cimport fabs, sqrt

ctypedef Py_ssize_t index

ctypedef fused real:
    float
    double

cdef extern from "_lanes.h":
    enum:
        ULR_HAS_DOTS
        ULR_ROWS
        ULR_VECTORS
        ULR_DOCUMENTS
    const float ULR_FAR
    void ulr_dots(const float **rows, const float *vectors, index n, float *dots) nogil
    void ulr_two_nearest(
        float *products, index stride, const float *offsets, index n_centroids, index n,
        int *nearest, float *lead,
    ) nogil

HAS_PRODUCTS = bool(ULR_HAS_DOTS)


def products(const float[:, :] rows, const index[::1] places, const float[:, ::1] vectors):
    """`ulr.refine.scoring.LinearScorer.products`; vectors are a multiple of ULR_VECTORS."""
    cdef index n = rows.shape[0] if places is None else places.shape[0]
    cdef index n_vectors = vectors.shape[0], n_dims = rows.shape[1], j, k, c, r
    products_array = np.empty((n_vectors, n), dtype=np.float32)
    cdef float[:, ::1] products = products_array
    cdef float dots[ULR_ROWS * ULR_VECTORS]
    cdef const float *some[ULR_ROWS]
    cdef bint picked = places is not None
    with nogil:
        j = 0
        while j < n:
            for r in range(ULR_ROWS):
                c = min(j + r, n - 1)  # the last row again where there are no more
                some[r] = &rows[places[c] if picked else c, 0]
            k = 0
            while k < n_vectors:
                ulr_dots(some, &vectors[k, 0], n_dims, dots)
                for r in range(min(<index>ULR_ROWS, n - j)):
                    for c in range(ULR_VECTORS):
                        products[k + c, j + r] = dots[r * ULR_VECTORS + c]
                k += ULR_VECTORS
            j += ULR_ROWS
    return products_array


def scores(
    float[:, ::1] products,
    const float[::1] offsets,
    const float[::1] lengths,
    const double[::1] squares,
    index start,
    bint squared,
    float per_length,
    float always,
    double level,
    double vague,
    index[::1] predictions,
    float[:, ::1] scores,
):
    """`ulr.refine.scoring.Scores.take_in`; the places of documents to be scored in float64."""
    cdef index n_centroids = products.shape[0], n = products.shape[1], first = 0, size, j, k, c
    cdef index n_unsure = 0
    unsure_array = np.empty(n, dtype=np.intp)
    cdef index[::1] unsure = unsure_array
    cdef int nearest[ULR_DOCUMENTS]
    cdef float leads[ULR_DOCUMENTS]
    cdef float distance, square = 0.0
    with nogil:
        while first < n:
            size = min(<index>ULR_DOCUMENTS, n - first)
            ulr_two_nearest(
                &products[0, first], n, &offsets[0], n_centroids, size, nearest, leads
            )
            for k in range(size):
                j = first + k
                predictions[j] = nearest[k]
                if squared:
                    square = <float>squares[start + j]
                for c in range(n_centroids):
                    distance = products[c, j] + square
                    scores[j, c] = -distance if distance > 0.0 or not squared else 0.0
                if (
                    leads[k] <= lengths[start + j] * per_length + always
                    or squared and (
                        leads[k] <= level * squares[start + j]
                        or -scores[j, nearest[k]] < vague * squares[start + j]
                    )
                ):
                    unsure[n_unsure] = j
                    n_unsure += 1
            first += size
    return unsure_array[:n_unsure]


def bounds(
    const double[:, :, ::1] levels,
    const double[:, :, :, ::1] since,
    const double[:, :, :, ::1] products,
    double slack,
    double widening,
):
    """`ulr.refine.trail.Trail.bounds` of runs that compare their centroids in pairs."""
    cdef index n_passes = levels.shape[0], n_runs = levels.shape[1], n = levels.shape[2]
    cdef index run, p, c, a, last = n_passes - 1
    tables = [np.empty((n_runs, n_passes, n), dtype=np.float32) for _ in range(3)]
    pairs_array = np.empty((n_runs, n_passes, n, n), dtype=np.float32)
    cdef float[:, :, ::1] shift = tables[0], lowest = tables[1], widest = tables[2]
    cdef float[:, :, :, ::1] pairs = pairs_array
    changes_array = np.empty((n, n))  # products of the changes of two slopes
    cdef double[:, ::1] changes = changes_array
    cdef double least, next_least, moved, far, square
    with nogil:
        for run in range(n_runs):
            for p in range(n_passes):
                least = next_least = ULR_FAR
                for c in range(n):
                    moved = levels[last, run, c] - levels[p, run, c]
                    shift[run, p, c] = <float>moved
                    if moved < least:
                        least, next_least = moved, least
                    elif moved < next_least:
                        next_least = moved
                for a in range(n):
                    for c in range(n):
                        changes[a, c] = products[p, run, a, c] + products[last, run, a, c]
                        changes[a, c] -= since[p, run, a, c] + since[p, run, c, a]
                for a in range(n):
                    moved = levels[last, run, a] - levels[p, run, a]
                    lowest[run, p, a] = <float>((next_least if moved == least else least) - moved)
                    far = 0.0
                    for c in range(n):
                        square = changes[a, a] + changes[c, c] - 2.0 * changes[a, c]
                        moved = widening * sqrt((square if square > 0.0 else 0.0) + slack)
                        pairs[run, p, a, c] = <float>moved
                        far = moved if moved > far else far
                    widest[run, p, a] = <float>far
    return *tables, pairs_array


def could_change(
    const int[::1] predictions,
    const float[:, ::1] distances,
    float[::1] lead,
    const int[::1] scored_at,
    int[::1] lead_at,
    index start,
    index stop,
    const float[::1] reach,
    const float[::1] lengths,
    float per_length,
    float always,
    const float[:, ::1] lowest,
    const float[:, ::1] widest,
    const float[:, ::1] shift,
    const float[:, ::1] drift,
    const float[:, :, ::1] pairs,
    int forgotten,
    int iteration,
):
    """`ulr.refine.memory.Memory.could_change`."""
    numbers_array = np.empty(stop - start, dtype=np.intp)
    cdef index[::1] numbers = numbers_array
    cdef index n_centroids = distances.shape[1], i, c, n = 0
    cdef int then, own
    cdef float doubt, least, left, its_reach, own_drift
    cdef const float *its_distances
    cdef const float *its_shift
    cdef const float *apart
    cdef bint in_pairs = pairs is not None
    with nogil:
        for i in range(start, stop):
            own, then, its_reach = predictions[i], lead_at[i], reach[i]
            doubt = 2 * (lengths[i] * per_length + always)
            if widest[then, own] * its_reach - lowest[then, own] + doubt < lead[i]:
                continue
            then = scored_at[i]
            its_distances, its_shift = &distances[i, 0], &shift[then, 0]
            apart, own_drift = &pairs[then, own, 0] if in_pairs else &drift[then, 0], 0.0
            if not in_pairs:
                own_drift = apart[own]
            least = ULR_FAR
            for c in range(n_centroids):
                left = its_distances[c] + its_shift[c] - its_reach * (apart[c] + own_drift)
                least = left if left < least and c != own else least
            least -= its_distances[own] + its_shift[own]
            if least <= doubt or lead[i] < 0 or then < forgotten:
                numbers[n] = i
                n += 1
            else:
                lead[i] = least
                lead_at[i] = iteration
    return numbers_array[:n]


def settle(
    int[::1] predictions,
    float[:, ::1] distances,
    float[::1] lead,
    int[::1] scored_at,
    int[::1] lead_at,
    const unsigned char[::1] free,
    const index[::1] numbers,
    index start,
    float[:, ::1] products,
    const real[:, :] rows,
    const index[::1] places,
    const float[::1] lengths,
    const double[::1] squares,
    bint unit,
    const double[:, ::1] slopes,
    const double[::1] offsets,
    float per_length,
    float always,
    double close,
    bint zero_stays,
    float never,
    float look_again,
    int iteration,
    double[:, ::1] sums,
    double[::1] counts,
):
    """`ulr.refine.memory.Memory.settle`; adds to sums and counts."""
    cdef index n_centroids = products.shape[0], n = products.shape[1], n_dims = rows.shape[1]
    cdef index first = 0, size, i, j, k, c, moved = 0
    cdef bint picked = numbers is not None, some_known = free is not None
    cdef bint of_block = places is not None, doubtful
    cdef int own
    cdef float its_lead
    cdef double scale
    cdef const real *row
    cdef int nearest[ULR_DOCUMENTS]
    cdef float leads[ULR_DOCUMENTS]
    offsets_array, work_array = np.asarray(offsets).astype(np.float32), np.empty(2 * n_centroids)
    cdef const float[::1] single_offsets = offsets_array
    cdef double[::1] work = work_array
    with nogil:
        for c in range(n_centroids):
            work[c] = sqrt(_dot(&slopes[c, 0], &slopes[c, 0], n_dims))
        while first < n:
            size = min(<index>ULR_DOCUMENTS, n - first)
            ulr_two_nearest(
                &products[0, first], n, &single_offsets[0], n_centroids, size, nearest, leads
            )
            for k in range(size):
                j = first + k
                i = numbers[j] if picked else start + j
                for c in range(n_centroids):
                    distances[i, c] = products[c, j]
                own, its_lead = nearest[k], leads[k]
                scored_at[i] = iteration
                lead_at[i] = iteration
                if some_known and not free[i]:
                    lead[i] = never
                    continue
                doubtful = its_lead <= lengths[i] * per_length + always
                if zero_stays and lengths[i] == 0.0:
                    its_lead = never
                elif doubtful:
                    its_lead = look_again
                lead[i] = its_lead
                if own == predictions[i] and not doubtful:
                    continue
                row = &rows[places[j] if of_block else j, 0]
                scale = 1.0 / sqrt(squares[i]) if unit and squares[i] > 0.0 else 1.0
                if doubtful:
                    own = _first_nearest(
                        row, scale, scale * sqrt(squares[i]), &slopes[0, 0], &offsets[0],
                        n_centroids, n_dims, close, &work[0], &work[n_centroids],
                    )
                    if own == predictions[i]:
                        continue
                moved += 1
                _add(&sums[own, 0], row, scale, n_dims)
                counts[own] += 1.0
                if predictions[i] >= 0:
                    _add(&sums[predictions[i], 0], row, -scale, n_dims)
                    counts[predictions[i]] -= 1.0
                predictions[i] = own
            first += size
    return moved


cdef int _first_nearest(
    const real *row, double scale, double length, const double *slopes, const double *offsets,
    index n_centroids, index n_dims, double close, const double *slope_lengths, double *compared,
) noexcept nogil:
    cdef index c
    cdef double least = 0.0
    for c in range(n_centroids):
        compared[c] = offsets[c] - scale * _dot(row, slopes + c * n_dims, n_dims)
        least = compared[c] if c == 0 or compared[c] < least else least
    for c in range(n_centroids):
        if compared[c] <= least + close * (length * slope_lengths[c] + fabs(offsets[c])):
            return <int>c
    return 0


def squares(const real[:, :] rows):
    """Squared lengths, in float64."""
    cdef index j
    squares_array = np.empty(rows.shape[0])
    cdef double[::1] squares = squares_array
    with nogil:
        for j in range(rows.shape[0]):
            squares[j] = _square(&rows[j, 0], rows.shape[1])
    return squares_array


cdef void _add(double *total, const real *row, double weight, index n) noexcept nogil:
    cdef index d
    for d in range(n):
        total[d] += weight * row[d]


cdef double _dot(const real *row, const double *other, index n) noexcept nogil:
    # Eight sums side by side, which a processor works on at the same time.
    cdef double part[8]
    cdef double total = 0.0
    cdef index d, k
    for k in range(8):
        part[k] = 0.0
    for d in range(0, n - 7, 8):
        for k in range(8):
            part[k] += row[d + k] * other[d + k]
    for d in range(n - n % 8, n):
        total += row[d] * other[d]
    for k in range(8):
        total += part[k]
    return total


cdef double _square(const real *row, index n) noexcept nogil:
    cdef double part[8]
    cdef double total = 0.0
    cdef index d, k
    for k in range(8):
        part[k] = 0.0
    for d in range(0, n - 7, 8):
        for k in range(8):
            part[k] += <double>row[d + k] * row[d + k]
    for d in range(n - n % 8, n):
        total += <double>row[d] * row[d]
    for k in range(8):
        total += part[k]
    return total
