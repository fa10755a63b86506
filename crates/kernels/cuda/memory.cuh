// Where a thread's elements are, and reading and writing them: 1 to 16 bytes an access.
#ifndef WARPCC_MEMORY_CUH
#define WARPCC_MEMORY_CUH

namespace warpcc {

template <int BYTES> struct word;
template <> struct word<1> { using type = uint8; };
template <> struct word<2> { using type = uint16; };
template <> struct word<4> { using type = uint32; };
template <> struct word<8> { using type = uint2; };
template <> struct word<16> { using type = uint4; };

/// Reads N neighbours in accesses of W elements. The address of the first is a multiple of W
/// elements; the bytes of W elements are a power of two, 16 at most.
template <int W, int N, class T>
WARPCC_FN void read(const T* from, T (&to)[N]) {
  using access = typename word<W * sizeof(T)>::type;
  static_assert(N % W == 0, "an access holds a whole share of the elements");
#pragma unroll
  for (int i = 0; i < N / W; ++i) {
    reinterpret_cast<access*>(to)[i] = reinterpret_cast<const access*>(from)[i];
  }
}

/// Writes N neighbours in accesses of W elements.
template <int W, int N, class T>
WARPCC_FN void write(T* to, const T (&from)[N]) {
  using access = typename word<W * sizeof(T)>::type;
  static_assert(N % W == 0, "an access holds a whole share of the elements");
#pragma unroll
  for (int i = 0; i < N / W; ++i) {
    reinterpret_cast<access*>(to)[i] = reinterpret_cast<const access*>(from)[i];
  }
}

/// Reads those of N neighbours from `at` on whose number is in 0..count; the others are as they
/// were. All reads are under way before the first is waited for.
template <int N, class T, class I>
WARPCC_FN void read_within(const T* from, I at, I count, T (&to)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (at + i >= 0 && at + i < count) to[i] = from[at + i];
  }
}
template <int N, class T, class I>
WARPCC_FN void write_within(T* to, I at, I count, const T (&from)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (at + i >= 0 && at + i < count) to[at + i] = from[i];
  }
}

/// Reads and writes N elements that stand `step` apart.
template <int N, class T, class I>
WARPCC_FN void gather(const T* from, I step, T (&to)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = from[i * step];
}
template <int N, class T, class I>
WARPCC_FN void scatter(T* to, I step, const T (&from)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) to[i * step] = from[i];
}

/// What becomes of a result: it replaces what was there, or is added to it.
enum request { request_write = 0, request_add = 1 };

/// A result before it is stored. Adding happens in the wider of the two compute types, so that
/// the sum is rounded once.
template <request R, class V, class B>
WARPCC_FN auto settled(V value, B before) {
  if constexpr (R == request_add) {
    using sum = number_t<mixed_type<B, V>>;
    if constexpr (is_integer<sum>) return wrapped<sum>((uint64)value + (uint64)before);
    else return (sum)((sum)value + (sum)before);
  } else {
    return value;
  }
}

/// A result as it is stored.
template <request R, class T, class V>
WARPCC_FN T stored(V value, compute_t<T> before) {
  return convert<T>(settled<R>(value, before));
}

/// Division by a number that stays the same, as a multiplication: exact for dividends below 2^31
/// (or 2^63), found by the host.
template <class I> struct divider;
template <> struct divider<int32> {
  uint32 factor, shift, by;
  WARPCC_MEMBER int32 divide(int32 x) const {
    return (int32)((__umulhi((uint32)x, factor) + (uint32)x) >> shift);
  }
};
template <> struct divider<int64> {
  uint64 factor, shift, by;
  WARPCC_MEMBER int64 divide(int64 x) const {
    return (int64)((__umul64hi((uint64)x, factor) + (uint64)x) >> shift);
  }
};

/// The place of an element in each of A arrays, from its number: D sizes (the first is not needed
/// to find a place), and each array's steps in elements.
template <class I, int A, int D> struct places {
  divider<I> size[D];
  I step[A][D];

  WARPCC_MEMBER void find(I number, I (&at)[A]) const {
#pragma unroll
    for (int a = 0; a < A; ++a) at[a] = 0;
#pragma unroll
    for (int d = D - 1; d > 0; --d) {
      const I rest = size[d].divide(number);
      const I here = number - rest * (I)size[d].by;
#pragma unroll
      for (int a = 0; a < A; ++a) at[a] += here * step[a][d];
      number = rest;
    }
#pragma unroll
    for (int a = 0; a < A; ++a) at[a] += number * step[a][0];
  }
};

}  // namespace warpcc
#endif
