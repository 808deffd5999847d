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
    void ulr_dots(
        const float **rows, const float **next, const float *vectors, index n, float *dots
    ) nogil
    double ulr_dot_singles(const float *row, const float *other, index n) nogil
    double ulr_dot_single(const float *row, const double *other, index n) nogil
    double ulr_dot_double(const double *row, const double *other, index n) nogil
    void ulr_move_single(
        double *from_, double *to, const float *row, double weight, index n
    ) nogil
    void ulr_move_double(
        double *from_, double *to, const double *row, double weight, index n
    ) nogil
    void ulr_two_nearest(
        float *products, index stride, const float *offsets, index n_centroids, index n,
        int *nearest, float *lead,
    ) nogil
    index ulr_suspects(
        index start, index stop, const int *places, const float *lead, const float *reach,
        const float *steps, const float *least, index *numbers,
    ) nogil
    ctypedef struct ulr_run:
        const int *predictions
        const int *scored_at
        const float *distances
        const float *lengths
        const float *reach
        const float *its_reach
        float *lead
        int *lead_places
        const float *shift
        const float *pairs
        const float *drift
        float per_length, per_reach, always
        int n_centroids, forgotten, iteration
    void ulr_fetch(const ulr_run *run, const index *numbers, index n) nogil
    index ulr_undecided(
        const ulr_run *run, index *numbers, index n, const float *near, index stride
    ) nogil
    void ulr_subtract(const float *now, const float *then, index n, float *change) nogil
    float ulr_square_apart(const float *one, const float *other, index n) nogil

HAS_PRODUCTS = bool(ULR_HAS_DOTS)

cdef enum:
    FEW_BYTES = 1 << 18  # of centroids and sums that stay in a cache while some runs go on


cdef class Documents:
    """What is known of every document and what runs remember: `ulr.refine.memory.Memory`."""

    cdef int[:, ::1] predictions
    cdef float[:, :, ::1] distances
    cdef float[:, ::1] lead
    cdef int[:, ::1] scored_at, lead_place
    cdef const unsigned char[::1] free
    cdef const float[::1] lengths, scale
    cdef const double[::1] squares
    cdef float[::1] reach
    cdef const float[::1] rest
    cdef const float[:, ::1] coordinates
    cdef bint zero_stays
    cdef float never, look_again
    cdef double close

    def __init__(
        self, predictions, distances, lead, scored_at, lead_place, free, lengths, scale, squares,
        reach, rest, coordinates, bint zero_stays, float never, float look_again, double close,
    ):
        self.predictions, self.distances, self.lead = predictions, distances, lead
        self.scored_at, self.lead_place, self.free = scored_at, lead_place, free
        self.lengths, self.scale, self.squares, self.reach = lengths, scale, squares, reach
        self.rest, self.coordinates = rest, coordinates
        self.zero_stays, self.never, self.look_again = zero_stays, never, look_again
        self.close = close


cdef class Target:
    """The centroids of a pass, and how far they have gone: `ulr.refine.memory.Target`."""

    cdef int iteration, forgotten
    cdef bint bounded
    cdef const index[::1] runs
    cdef const float[:, :, ::1] vectors, sketched
    cdef const double[:, :, ::1] slopes
    cdef const double[:, ::1] offsets, lengths
    cdef const float[:, ::1] single_offsets, doubts
    cdef const float[:, :, ::1] steps, least, shift, drift
    cdef const float[:, :, :, ::1] pairs

    def __init__(
        self, int iteration, runs, slopes, offsets, lengths, vectors, sketched, doubts, bounds
    ):
        self.iteration, self.runs, self.vectors = iteration, runs, vectors
        self.slopes, self.offsets, self.lengths = slopes, offsets, lengths
        self.single_offsets = offsets.astype(np.float32)
        self.doubts, self.sketched, self.bounded = doubts, sketched, bounds is not None
        self.steps = self.least = self.shift = self.drift = self.pairs = None
        if bounds is not None:
            self.steps, self.least, self.shift = bounds.steps, bounds.least, bounds.shift
            self.drift, self.pairs, self.forgotten = bounds.drift, bounds.pairs, bounds.forgotten


def products(const float[:, :] rows, const float[:, ::1] vectors):
    """`ulr.refine.scoring.LinearScorer.products`; vectors are a multiple of ULR_VECTORS."""
    cdef index n = rows.shape[0], n_vectors = vectors.shape[0]
    products_array = np.empty((n_vectors, n), dtype=np.float32)
    cdef float[:, ::1] products = products_array
    with nogil:
        _products(rows, NULL, 0, n, &vectors[0, 0], n_vectors, &products[0, 0], n, 1, NULL)
    return products_array


cdef void _products(
    const real[:, :] rows, const index *numbers, index start, index n, const float *vectors,
    index n_vectors, float *products, index by_vector, index by_row, float *singles,
) noexcept nogil:
    """Of some rows, those numbered from `start` on; `singles` has room for three in float32."""
    cdef index n_dims = rows.shape[1], j = 0, k, c, r, d, place
    cdef float dots[ULR_ROWS * ULR_VECTORS]
    cdef const float *some[ULR_ROWS * 2]
    cdef const real *row
    while j < n:
        for r in range(ULR_ROWS * 2):
            c = min(j + r, n - 1)  # the last row again where there are no more
            place = numbers[c] - start if numbers != NULL else c
            if real is float:
                some[r] = &rows[place, 0]
            else:
                some[r] = singles + r % ULR_ROWS * n_dims
                if r < ULR_ROWS:
                    row = &rows[place, 0]
                    for d in range(n_dims):
                        singles[r * n_dims + d] = <float>row[d]
        k = 0
        while k < n_vectors:
            ulr_dots(some, some + ULR_ROWS, vectors + k * n_dims, n_dims, dots)
            for r in range(min(<index>ULR_ROWS, n - j)):
                for c in range(ULR_VECTORS):
                    products[(k + c) * by_vector + (j + r) * by_row] = dots[r * ULR_VECTORS + c]
            k += ULR_VECTORS
        j += ULR_ROWS


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


def aim(
    const double[:, ::1] slopes,
    const double[::1] offsets,
    const double[::1] middle,
    const double[::1] factors,
    float[:, ::1] doubts,
):
    """`ulr.refine.linear.SharedPasses._measure`."""
    cdef index n_runs = doubts.shape[1], n = slopes.shape[0] // n_runs, n_dims = slopes.shape[1]
    cdef index n_vectors = n + (ULR_VECTORS - n % ULR_VECTORS) % ULR_VECTORS, k, c, d, place
    lengths_array, levels_array = np.empty((n_runs, n)), np.empty((n_runs, n))
    vectors_array = np.empty((n_runs, n_vectors, n_dims), dtype=np.float32)
    cdef double[:, ::1] lengths = lengths_array, levels = levels_array
    cdef float[:, :, ::1] vectors = vectors_array
    cdef double longest, highest, level
    with nogil:
        for k in range(n_runs):
            longest = highest = level = 0.0
            for c in range(n):
                place = k * n + c
                lengths[k, c] = sqrt(ulr_dot_double(&slopes[place, 0], &slopes[place, 0], n_dims))
                levels[k, c] = offsets[place] - ulr_dot_double(
                    &slopes[place, 0], &middle[0], n_dims
                )
                longest, level = max(longest, lengths[k, c]), max(level, fabs(levels[k, c]))
                highest = max(highest, fabs(offsets[place]))
                for d in range(n_dims):
                    vectors[k, c, d] = <float>slopes[place, d]
            for c in range(n, n_vectors):
                for d in range(n_dims):
                    vectors[k, c, d] = 0.0
            doubts[0, k] = max(doubts[0, k], <float>(factors[0] * longest))
            doubts[1, k] = max(doubts[1, k], <float>(factors[1] * highest))
            doubts[2, k] = max(doubts[2, k], <float>(factors[2] * longest))
            doubts[3, k] = max(doubts[3, k], <float>(factors[3] * level))
    return lengths_array, levels_array, vectors_array


def bounds(
    const double[:, :, ::1] levels,
    const float[:, :, :, ::1] trail,
    const float[:, :, :, ::1] sketched,
    const index[::1] runs,
    index n_kept,
    index forgotten,
    double longest,
    const float[::1] per_reach,
    const float[::1] always,
    float look_again,
):
    """`ulr.refine.trail.Trail.bounds` of runs that compare their centroids in pairs.

    Where slopes are sketched, `pairs` is about the rest of them.
    """
    cdef index n_runs = runs.shape[0], n = levels.shape[2], n_dims = trail.shape[3]
    cdef index n_coordinates = sketched.shape[3], n_passes = n_kept + forgotten
    cdef index k, run, p, t, c, a, d, last = n_kept - 1
    tables = [np.zeros((n_runs, n_passes, n), dtype=np.float32) for _ in range(3)]
    pairs_array = np.zeros((n_runs, n_passes, n, n), dtype=np.float32)
    cdef float[:, :, ::1] shift = tables[0], steps = tables[1], least_shift = tables[2]
    cdef float[:, :, :, ::1] pairs = pairs_array
    changes_array = np.empty((n, n_dims), dtype=np.float32)
    known_array = np.empty((n, n_coordinates + 1), dtype=np.float32)
    cdef float[:, ::1] changes = changes_array, known = known_array
    # Of a sum of squares, relative, and of the difference of four slopes or their coordinates.
    cdef double rounding = (n_dims + 64.0) / (1 << 23), slack = longest / (1 << 21)
    cdef double least, next_least, moved, seen
    with nogil:
        for k in range(n_runs):
            run = runs[k]
            for t in range(forgotten):
                for c in range(n):
                    least_shift[k, t, c] = look_again
            for p in range(n_kept):
                t = forgotten + p
                least = next_least = ULR_FAR
                for c in range(n):
                    moved = levels[run, last, c] - levels[run, p, c]
                    shift[k, t, c] = <float>moved
                    if moved < least:
                        least, next_least = moved, least
                    elif moved < next_least:
                        next_least = moved
                for c in range(n):
                    moved = levels[run, last, c] - levels[run, p, c]
                    moved = (next_least if moved == least else least) - moved
                    least_shift[k, t, c] = <float>moved - always[k]
                    ulr_subtract(
                        &trail[run, last, c, 0], &trail[run, p, c, 0], n_dims, &changes[c, 0]
                    )
                    for d in range(n_coordinates):
                        known[c, d] = sketched[run, last, c, d] - sketched[run, p, c, d]
                for a in range(n):
                    for c in range(a):
                        moved = ulr_square_apart(&changes[a, 0], &changes[c, 0], n_dims)
                        moved = sqrt(moved * (1.0 + rounding)) + slack
                        steps[k, t, a] = max(steps[k, t, a], <float>moved)
                        steps[k, t, c] = max(steps[k, t, c], <float>moved)
                        if n_coordinates:
                            seen = ulr_square_apart(&known[a, 0], &known[c, 0], n_coordinates)
                            seen = max(sqrt(seen * (1.0 - rounding)) - slack, 0.0)
                            moved = sqrt(max(moved * moved - seen * seen, 0.0)) + slack
                        pairs[k, t, a, c] = pairs[k, t, c, a] = <float>moved
                for c in range(n):
                    steps[k, t, c] += per_reach[k]
    return *tables, pairs_array


def could_change(Documents memory, Target target, index k, index start, index stop):
    """`ulr.refine.memory.Memory.could_change`."""
    numbers_array = np.empty(stop - start, dtype=np.intp)
    work_array = np.empty(_room(memory), dtype=np.float32)
    cdef index[::1] numbers = numbers_array
    cdef float[::1] work = work_array
    cdef index n
    with nogil:
        n = _could_change(memory, target, k, start, stop, &numbers[0], &work[0])
    return numbers_array[:n]


cdef index _room(Documents memory) noexcept:
    """For the distances in the sketch of ULR_DOCUMENTS documents."""
    if memory.coordinates is None:
        return 1
    return (memory.distances.shape[2] + ULR_VECTORS) * ULR_DOCUMENTS


cdef index _could_change(
    Documents memory, Target target, index k, index start, index stop, index *numbers, float *near
) noexcept nogil:
    """`near` has room for the distances of ULR_DOCUMENTS in the sketch."""
    cdef index place = target.runs[k], n = 0, n_suspects, first = start
    cdef bint is_sketched = target.sketched is not None
    cdef ulr_run run
    run.predictions, run.scored_at = &memory.predictions[place, 0], &memory.scored_at[place, 0]
    run.lead, run.lead_places = &memory.lead[place, 0], &memory.lead_place[place, 0]
    run.distances, run.lengths = &memory.distances[place, 0, 0], &memory.lengths[0]
    run.reach = run.its_reach = &memory.reach[0]
    run.shift, run.pairs, run.drift = &target.shift[k, 0, 0], NULL, NULL
    if target.pairs is not None:
        run.pairs = &target.pairs[k, 0, 0, 0]
    else:
        run.drift = &target.drift[k, 0, 0]
    run.per_length, run.per_reach = 2 * target.doubts[0, k], target.doubts[2, k]
    run.always = 2 * target.doubts[1, k] + target.doubts[3, k]
    run.n_centroids = <int>memory.distances.shape[2]
    run.forgotten, run.iteration = target.forgotten, target.iteration
    if is_sketched:
        run.its_reach = &memory.rest[0]
    while first < stop:
        n_suspects = ulr_suspects(
            first, min(first + ULR_DOCUMENTS, stop), run.lead_places, run.lead, run.reach,
            &target.steps[k, 0, 0], &target.least[k, 0, 0], numbers + n,
        )
        if is_sketched:
            ulr_fetch(&run, numbers + n, n_suspects)
            _near(memory, target, k, numbers + n, n_suspects, near)
        n += ulr_undecided(
            &run, numbers + n, n_suspects, near if is_sketched else NULL,
            target.sketched.shape[1] if is_sketched else 0,
        )
        first += ULR_DOCUMENTS
    return n


cdef void _near(
    Documents memory, Target target, index k, const index *numbers, index n, float *near
) noexcept nogil:
    """What the sketches tell of the distances of documents, a row for each, to be taken off."""
    cdef index n_vectors = target.sketched.shape[1]
    _products[float](
        memory.coordinates, numbers, 0, n, &target.sketched[k, 0, 0], n_vectors, near, 1,
        n_vectors, NULL,
    )


def settle(
    Documents memory,
    Target target,
    index k,
    const index[::1] numbers,
    float[:, ::1] products,
    const real[:, :] rows,
    double[:, ::1] sums,
    double[::1] counts,
):
    """`ulr.refine.memory.Memory.settle`; adds to sums and counts."""
    cdef index n = products.shape[1], first = 0, moved = 0
    compared_array = np.empty(products.shape[0])
    work_array = np.empty(_room(memory), dtype=np.float32)
    cdef double[::1] compared = compared_array
    cdef float[::1] work = work_array
    with nogil:
        while first < n:
            moved += _settle(
                memory, target, k, &numbers[first], min(<index>ULR_DOCUMENTS, n - first),
                &products[0, first], n, rows, first, -1,
                &sums[0, 0], &counts[0], &compared[0], &work[0],
            )
            first += ULR_DOCUMENTS
    return moved


cdef index _settle(
    Documents memory, Target target, index k, const index *numbers, index n, float *products,
    index stride, const real[:, :] rows, index first, index start, double *sums, double *counts,
    double *compared, float *near,
) noexcept nogil:
    """Of at most ULR_DOCUMENTS; their rows are from `first` on, or else numbered from `start`."""
    cdef index n_centroids = memory.distances.shape[2], n_dims = rows.shape[1]
    cdef index run = target.runs[k], i, j, c, moved = 0
    cdef bint some_known = memory.free is not None, unit = memory.scale is not None, doubtful
    cdef int *predictions = &memory.predictions[run, 0]
    cdef float per_length = target.doubts[0, k], always = target.doubts[1, k], its_lead
    cdef double scale, length
    cdef double *from_where
    cdef int own, before
    cdef const real *row
    cdef float *distances
    cdef int nearest[ULR_DOCUMENTS]
    cdef float leads[ULR_DOCUMENTS]
    ulr_two_nearest(products, stride, &target.single_offsets[k, 0], n_centroids, n, nearest, leads)
    if target.sketched is not None:  # what the sketch does not tell is remembered
        _near(memory, target, k, numbers, n, near)
        for j in range(n):
            for c in range(n_centroids):
                products[c * stride + j] += near[j * target.sketched.shape[1] + c]
    for j in range(n):
        i, own, its_lead = numbers[j], nearest[j], leads[j]
        distances, before = &memory.distances[run, i, 0], predictions[i]
        for c in range(n_centroids):
            distances[c] = products[c * stride + j]
        memory.scored_at[run, i] = target.iteration
        memory.lead_place[run, i] = target.iteration * <int>n_centroids + before
        if some_known and not memory.free[i]:
            memory.lead[run, i] = memory.never
            continue
        doubtful = its_lead <= memory.lengths[i] * per_length + always
        if memory.zero_stays and memory.lengths[i] == 0.0:
            its_lead = memory.never
        elif doubtful:
            its_lead = memory.look_again
        memory.lead[run, i] = its_lead
        if own == before and not doubtful:
            continue
        row = &rows[first + j if start < 0 else i - start, 0]
        length = sqrt(memory.squares[i])
        scale = 1.0 / length if unit and length > 0.0 else 1.0
        if doubtful:
            own = _first_nearest(target, k, row, scale, scale * length, memory.close, compared)
            if own == before:
                continue
        memory.lead_place[run, i] = target.iteration * <int>n_centroids + own
        moved += 1
        from_where = sums + before * n_dims if before >= 0 else NULL
        _move(from_where, sums + own * n_dims, row, scale, n_dims)
        counts[own] += 1.0
        if before >= 0:
            counts[before] -= 1.0
        predictions[i] = own
    return moved


cdef int _first_nearest(
    Target target, index k, const real *row, double scale, double length, double close,
    double *compared,
) noexcept nogil:
    cdef index n_centroids = target.slopes.shape[1], n_dims = target.slopes.shape[2], c
    cdef double least = 0.0, equal
    for c in range(n_centroids):
        compared[c] = target.offsets[k, c] - scale * _dot(row, &target.slopes[k, c, 0], n_dims)
        least = compared[c] if c == 0 or compared[c] < least else least
    for c in range(n_centroids):
        equal = length * target.lengths[k, c] + fabs(target.offsets[k, c])
        if compared[c] <= least + close * equal:
            return <int>c
    return 0


def advance(
    Documents memory,
    Target target,
    const real[:, :] rows,
    index start,
    const float[:, ::1] middle,
    double middle_square,
    double[:, :, ::1] sums,
    double[:, ::1] counts,
    index[::1] moved,
    index[::1] scored,
):
    """`ulr.refine.linear.SharedPasses._score_all` and `_score_some`; rows from `start` on.

    Finds the documents that could change in each of some runs, then goes through few of them at a
    time, and decides about these while their rows are in the cache. Adds to sums, counts, moved
    and scored. The first of four vectors may be the middle, if it is to be measured how far it
    is; no document is passed over then.
    """
    cdef index n_runs = target.runs.shape[0], n = rows.shape[0], n_dims = rows.shape[1]
    cdef index n_vectors = target.vectors.shape[1], first, stop, r, k, j, c, m
    cdef index some = min(n_runs, max(1, FEW_BYTES // (12 * n_vectors * n_dims))), run = 0
    cdef bint unit = memory.scale is not None
    numbers_array, found_array = np.empty((some, n), dtype=np.intp), np.empty(some, dtype=np.intp)
    done_array = np.empty(some, dtype=np.intp)
    products_array = np.empty(n_vectors * ULR_DOCUMENTS, dtype=np.float32)
    singles_array = np.empty(ULR_ROWS * n_dims if real is double else 1, dtype=np.float32)
    compared_array, near_array = np.empty(n_vectors), np.empty(_room(memory), dtype=np.float32)
    cdef index[:, ::1] numbers = numbers_array
    cdef index[::1] found = found_array, done = done_array
    cdef float[::1] products = products_array, singles = singles_array, near = near_array
    cdef double[::1] compared = compared_array
    cdef index *its_numbers
    with nogil:
        while run < n_runs:
            for r in range(min(some, n_runs - run)):
                k = run + r
                done[r] = 0
                if target.bounded:
                    found[r] = _could_change(
                        memory, target, k, start, start + n, &numbers[r, 0], &near[0]
                    )
                else:
                    found[r] = n
                    for j in range(n):
                        numbers[r, j] = start + j
                scored[k] += found[r]
            first = 0
            while first < n:
                stop = start + min(first + ULR_DOCUMENTS, n)
                if middle is not None and run == 0:
                    _measure(
                        memory, rows, start, start + first, stop, middle, middle_square,
                        &numbers[0, first], &products[0], &singles[0],
                    )
                for r in range(min(some, n_runs - run)):
                    k = run + r
                    its_numbers, m = &numbers[r, done[r]], 0
                    while done[r] + m < found[r] and its_numbers[m] < stop:
                        m += 1
                    if m == 0:
                        continue
                    done[r] += m
                    _products(
                        rows, its_numbers, start, m, &target.vectors[k, 0, 0], n_vectors,
                        &products[0], ULR_DOCUMENTS, 1, &singles[0],
                    )
                    if unit:
                        for c in range(target.slopes.shape[1]):
                            for j in range(m):
                                products[c * ULR_DOCUMENTS + j] *= memory.scale[its_numbers[j]]
                    moved[k] += _settle(
                        memory, target, k, its_numbers, m, &products[0], ULR_DOCUMENTS, rows, 0, start,
                        &sums[k, 0, 0], &counts[k, 0], &compared[0], &near[0],
                    )
                first += ULR_DOCUMENTS
            run += some


cdef void _measure(
    Documents memory, const real[:, :] rows, index start, index first, index stop,
    const float[:, ::1] middle, double square, const index *numbers, float *products,
    float *singles,
) noexcept nogil:
    """`ulr.refine.memory.Memory.measure`."""
    cdef index n_dims = rows.shape[1], i
    cdef double rounding = 1.0 / (1 << 24), length, doubt, squared
    _products(
        rows, numbers, start, stop - first, &middle[0, 0], ULR_VECTORS, products, ULR_DOCUMENTS,
        1, singles,
    )
    for i in range(first, stop):
        length, squared = memory.lengths[i], products[i - first]
        if memory.scale is not None:
            squared *= memory.scale[i]
        doubt = 4 * (n_dims + 32) * rounding * length * (length + sqrt(square))
        squared = length * length - 2.0 * squared + square
        memory.reach[i] = <float>(
            sqrt((squared if squared > 0.0 else 0.0) + doubt) * (1.0 + 4 * rounding)
        )


def squares(const real[:, :] rows):
    """Squared lengths, in float64."""
    cdef index j
    squares_array = np.empty(rows.shape[0])
    cdef double[::1] squares = squares_array
    with nogil:
        for j in range(rows.shape[0]):
            if real is float:
                squares[j] = ulr_dot_singles(&rows[j, 0], &rows[j, 0], rows.shape[1])
            else:
                squares[j] = ulr_dot_double(&rows[j, 0], &rows[j, 0], rows.shape[1])
    return squares_array


cdef inline void _move(
    double *before, double *after, const real *row, double weight, index n
) noexcept nogil:
    if real is float:
        ulr_move_single(before, after, row, weight, n)
    else:
        ulr_move_double(before, after, row, weight, n)


cdef inline double _dot(const real *row, const double *other, index n) noexcept nogil:
    if real is float:
        return ulr_dot_single(row, other, n)
    else:
        return ulr_dot_double(row, other, n)
