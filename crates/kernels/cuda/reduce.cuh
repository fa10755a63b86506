// Reductions: what is kept of many values, and kernels' bodies that share the work.
//
// The order in which values meet depends on the shape alone, so results repeat bit for bit.
#ifndef WARPCC_REDUCE_CUH
#define WARPCC_REDUCE_CUH

namespace warpcc {
namespace red {

// Each reduction has a state of one or more numbers: `start` of nothing, `take` a value, `merge`
// another state, `finish` with the count of values taken.

/// A sum with what rounding lost (Kahan). Once infinite, it stays so.
template <class A> struct total {
  A sum, lost;
  WARPCC_MEMBER void take(A x) {
    const A y = x - lost, t = sum + y, l = (t - sum) - y;
    lost = l == l ? l : (A)0;
    sum = t;
  }
  WARPCC_MEMBER void merge(const total& other) {
    take(other.sum);
    take(-other.lost);
  }
  WARPCC_MEMBER A value() const { return sum; }
};
template <> struct total<int64> {
  int64 sum;
  WARPCC_MEMBER void take(int64 x) { sum = (int64)((uint64)sum + (uint64)x); }
  WARPCC_MEMBER void merge(const total& other) { take(other.sum); }
  WARPCC_MEMBER int64 value() const { return sum; }
};
template <> struct total<uint64> {
  uint64 sum;
  WARPCC_MEMBER void take(uint64 x) { sum += x; }
  WARPCC_MEMBER void merge(const total& other) { take(other.sum); }
  WARPCC_MEMBER uint64 value() const { return sum; }
};

#define WARPCC_TOTAL(NAME, OF, FINISH)                                              \
  template <class T> struct NAME {                                                  \
    using C = compute_t<T>;                                                         \
    using A = accumulate_t<T>;                                                      \
    using state = total<A>;                                                         \
    WARPCC_MEMBER static state start() { return state{}; }                          \
    WARPCC_MEMBER static void take(state& s, C x) { s.take((A)(OF)); }              \
    WARPCC_MEMBER static void merge(state& s, const state& o) { s.merge(o); }       \
    WARPCC_MEMBER static auto finish(const state& s, double count) {                \
      (void)count;                                                                  \
      return FINISH;                                                                \
    }                                                                               \
  };
WARPCC_TOTAL(sum, x, s.value())
WARPCC_TOTAL(sumsq, op::square((A)x), s.value())
WARPCC_TOTAL(norm1, op::abs((A)x), s.value())
WARPCC_TOTAL(nansum, (is_nan(x) ? (C)0 : x), s.value())
WARPCC_TOTAL(mean, x, (real_t<choose_t<is_float<T>, T, int64>>)(s.value() / (real_t<choose_t<is_float<T>, T, int64>>)count))
#undef WARPCC_TOTAL

/// How many are not zero.
template <class T> struct count_nonzero {
  using state = total<uint64>;
  WARPCC_MEMBER static state start() { return state{}; }
  WARPCC_MEMBER static void take(state& s, compute_t<T> x) { s.take(op::nonzero(x) ? 1 : 0); }
  WARPCC_MEMBER static void merge(state& s, const state& o) { s.merge(o); }
  WARPCC_MEMBER static uint64 finish(const state& s, double) { return s.value(); }
};

#define WARPCC_SINGLE(NAME, STATE, START, TAKE, MERGE)                                   \
  template <class T> struct NAME {                                                       \
    using C = compute_t<T>;                                                              \
    using A = accumulate_t<T>;                                                           \
    using state = STATE;                                                                 \
    WARPCC_MEMBER static state start() { return START; }                                 \
    WARPCC_MEMBER static void take(state& s, C x) { TAKE; }                              \
    WARPCC_MEMBER static void merge(state& s, const state& o) { MERGE; }                 \
    WARPCC_MEMBER static state finish(const state& s, double) { return s; }              \
  };

/// The least and the largest value of a type.
template <class C> WARPCC_FN C lowest() {
  if constexpr (is_float<C>) return (C)-special::infinity();
  else if constexpr (is_bool<C>) return false;
  else if constexpr (traits<C>::is_signed) return (C)(1ull << (traits<C>::bits - 1));
  else return 0;
}
template <class C> WARPCC_FN C highest() {
  if constexpr (is_float<C>) return (C)special::infinity();
  else if constexpr (is_bool<C>) return true;
  else return (C)(~0ull >> (64 - traits<C>::bits + (traits<C>::is_signed ? 1 : 0)));
}
WARPCC_SINGLE(prod, A, (A)1, s = op::mul(s, (A)x), s = op::mul(s, o))
WARPCC_SINGLE(nanprod, A, (A)1, s = op::mul(s, is_nan(x) ? (A)1 : (A)x), s = op::mul(s, o))
WARPCC_SINGLE(max, C, lowest<C>(), s = op::max(s, x), s = op::max(s, o))
WARPCC_SINGLE(min, C, highest<C>(), s = op::min(s, x), s = op::min(s, o))
WARPCC_SINGLE(norm_inf, A, (A)0, s = op::max(s, op::abs((A)x)), s = op::max(s, o))
WARPCC_SINGLE(any, bool, false, s = s || op::nonzero(x), s = s || o)
WARPCC_SINGLE(all, bool, true, s = s && op::nonzero(x), s = s && o)
#undef WARPCC_SINGLE

/// The root of the sum of squares. Squares of float are exact in double, neither overflow nor vanish
/// there, and are summed there as they are: the 2^31 of a thread lose less than float shows.
template <class T, bool FLOAT = same<compute_t<T>, float>::value> struct norm2 {
  using state = double;
  WARPCC_MEMBER static state start() { return 0; }
  WARPCC_MEMBER static void take(state& s, compute_t<T> x) {
    const double a = (double)x;
    s = ::fma(a, a, s);
  }
  WARPCC_MEMBER static void merge(state& s, const state& o) { s += o; }
  WARPCC_MEMBER static auto finish(const state& s, double) {
    return (float)::sqrt(s);
  }
};
/// Those of double and of integers, compensated, in three sums by size, two of them scaled (Blue).
template <class T> struct norm2<T, false> {
  using C = compute_t<T>;
  struct state { total<double> middle; double large, small; };
  WARPCC_MEMBER static state start() { return state{}; }
  WARPCC_MEMBER static void take(state& s, C x) {
    const double a = ::fabs((double)x);
    if (a > 0x1p500) {
      s.large += (a * 0x1p-600) * (a * 0x1p-600);
    } else if (a < 0x1p-500) {
      s.small += (a * 0x1p600) * (a * 0x1p600);
    } else {
      s.middle.take(a * a);
    }
  }
  WARPCC_MEMBER static void merge(state& s, const state& o) {
    s.middle.merge(o.middle);
    s.large += o.large;
    s.small += o.small;
  }
  WARPCC_MEMBER static auto finish(const state& s, double) {
    const double m = s.middle.value();
    double result;
    if (s.large > 0) {
      result = is_nan(m) ? m : ::sqrt(s.large + m * 0x1p-600 * 0x1p-600) * 0x1p600;
    } else if (m == 0) {
      result = ::sqrt(s.small) * 0x1p-600;
    } else {
      result = ::sqrt(m);
    }
    return result;
  }
};

/// Where the result of a kept place goes: to the output, or, of a part, to the workspace.
template <class O, class OUT, request Q, class I>
WARPCC_FN void hand_over(const typename O::state& s, OUT* out, I at, typename O::state* partial,
                         I number, double count) {
  if (partial) {
    partial[number] = s;
  } else {
    out[at] = stored<Q, OUT>(O::finish(s, count), widen(out[at]));
  }
}

/// Merges the states of L neighbouring threads, a power of two, into that of the first.
template <class O, int L>
WARPCC_FN void merge_lanes(typename O::state* all, const typename O::state& s) {
  const int lane = threadIdx.x % L;
  all[threadIdx.x] = s;
  if constexpr (L > 32) __syncthreads();
  else __syncwarp();
#pragma unroll
  for (int w = L / 2; w > 0; w /= 2) {
    if (lane < w) O::merge(all[threadIdx.x], all[threadIdx.x + w]);
    // Those that wrote are in one warp once they are 32.
    if (w > 32) __syncthreads();
    else __syncwarp();
  }
}

/// Takes U groups of V neighbours, STEP apart, that are read before the first is taken. Of several states each takes its
/// own of the V.
template <class O, int U, int V, int W, int STEP, class IN, class I, int DR, int STATES>
WARPCC_FN void take_some(typename O::state (&s)[STATES], const IN* from,
                         const places<I, 1, DR>& reduced_at, I r) {
  alignas(16) IN held[U][V];
#pragma unroll
  for (int u = 0; u < U; ++u) {
    I place[1];
    reduced_at.find(r + u * STEP, place);
    read<W, V>(from + place[0], held[u]);
  }
#pragma unroll
  for (int u = 0; u < U; ++u) {
    compute_t<IN> values[V];
    widen_all(held[u], values);
#pragma unroll
    for (int v = 0; v < V; ++v) O::take(s[v % STATES], values[v]);
  }
}

/// Takes every STEP-th group before `end`, U at a time. What is left at the end is taken one by one: to ask before each
/// whether it is there costs a tenth.
template <class O, int U, int V, int W, int STEP, class IN, class I, int DR, int STATES>
WARPCC_FN void take_all(typename O::state (&s)[STATES], const IN* from,
                        const places<I, 1, DR>& reduced_at, I r, I end) {
  for (; r + (U - 1) * STEP < end; r += U * STEP) {
    take_some<O, U, V, W, STEP>(s, from, reduced_at, r);
  }
#pragma unroll 1
  for (; r < end; r += STEP) take_some<O, 1, V, W, STEP>(s, from, reduced_at, r);
}

/// L neighbouring threads share a kept place's values, V side by side at a time.
template <class O, class IN, class OUT, request Q, class I, int DK, int DR, int V, int W, int L, int T>
__device__ __forceinline__ void rows(OUT* out, const IN* in, typename O::state* partial,
                                     const places<I, 2, DK>& kept_at,
                                     const places<I, 1, DR>& reduced_at, I kept, I reduced, I share,
                                     double count) {
  __shared__ typename O::state all[T];
  const int lane = threadIdx.x % L;
  const I k = (I)blockIdx.x * (T / L) + threadIdx.x / L;
  I at[2] = {0, 0};
  typename O::state s[1] = {O::start()};
  if (k < kept) {
    kept_at.find(k, at);
    const I first = (I)blockIdx.y * share;
    const I end = first + share < reduced ? first + share : reduced;
    take_all<O, 4, V, W, L>(s, in + at[1], reduced_at, first + lane, end);
  }
  merge_lanes<O, L>(all, s[0]);
  if (lane == 0 && k < kept) {
    hand_over<O, OUT, Q>(all[threadIdx.x], out, at[0], partial, (I)blockIdx.y * kept + k, count);
  }
}

/// C neighbouring threads take V kept places each, side by side; T / C of them share the values.
template <class O, class IN, class OUT, request Q, class I, int DK, int DR, int V, int W, int C, int T>
__device__ __forceinline__ void columns(OUT* out, const IN* in, typename O::state* partial,
                                        const places<I, 2, DK>& kept_at,
                                        const places<I, 1, DR>& reduced_at, I groups, I reduced,
                                        I share, I out_step, double count) {
  constexpr int S = T / C;
  __shared__ typename O::state all[T];
  const int sharer = threadIdx.x / C;
  const I g = (I)blockIdx.x * C + threadIdx.x % C;
  I at[2] = {0, 0};
  typename O::state s[V];
#pragma unroll
  for (int v = 0; v < V; ++v) s[v] = O::start();
  if (g < groups) {
    kept_at.find(g, at);
    const I first = (I)blockIdx.y * share;
    const I end = first + share < reduced ? first + share : reduced;
    // More at once where taking them is more work.
    take_all<O, (V > 4 ? 4 : 2), V, W, S>(s, in + at[1], reduced_at, first + sharer, end);
  }
#pragma unroll
  for (int v = 0; v < V; ++v) {
    all[threadIdx.x] = s[v];
    __syncthreads();
#pragma unroll
    for (int w = S / 2; w > 0; w /= 2) {
      if (sharer < w) O::merge(all[threadIdx.x], all[threadIdx.x + C * w]);
      __syncthreads();
    }
    if (sharer == 0 && g < groups) {
      hand_over<O, OUT, Q>(all[threadIdx.x], out, at[0] + v * out_step, partial,
                           (I)blockIdx.y * (groups * V) + g * V + v, count);
    }
    __syncthreads();
  }
}

/// Merges the parts of each kept place: L neighbouring threads share them.
template <class O, class OUT, request Q, class I, int DK, int L, int T>
__device__ __forceinline__ void parts(OUT* out, const typename O::state* partial,
                                      const places<I, 2, DK>& kept_at, I kept, I shares,
                                      double count) {
  __shared__ typename O::state all[T];
  const int lane = threadIdx.x % L;
  const I k = (I)blockIdx.x * (T / L) + threadIdx.x / L;
  auto s = O::start();
  if (k < kept) {
    for (I share = lane; share < shares; share += L) O::merge(s, partial[share * kept + k]);
  }
  merge_lanes<O, L>(all, s);
  if (lane == 0 && k < kept) {
    I at[2];
    kept_at.find(k, at);
    hand_over<O, OUT, Q, I>(all[threadIdx.x], out, at[0], nullptr, 0, count);
  }
}

}  // namespace red
}  // namespace warpcc
#endif
