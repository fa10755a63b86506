// Element types, what they are computed in, and conversion between them.
//
// Self-contained: NVRTC needs no CUDA header for this text, and a host compiler takes it too (with
// WARPCC_HOST), so that it is tested where there is no GPU. Storage types (half, bfloat16, the two
// fp8, boolean) hold bits; all arithmetic happens in a compute type.
#ifndef WARPCC_TYPES_CUH
#define WARPCC_TYPES_CUH

#ifndef WARPCC_HOST
#define WARPCC_FN __device__ __forceinline__
#define WARPCC_MEMBER __device__ __forceinline__
#else
#define WARPCC_FN static inline
#define WARPCC_MEMBER inline
#endif

namespace warpcc {

using int8 = signed char;
using uint8 = unsigned char;
using int16 = short;
using uint16 = unsigned short;
using int32 = int;
using uint32 = unsigned int;
using int64 = long long;
using uint64 = unsigned long long;
using float32 = float;
using float64 = double;

struct boolean { uint8 bits; };        // 0 is false, anything else true; written as 0 or 1
struct half { uint16 bits; };          // IEEE binary16
struct bfloat16 { uint16 bits; };      // the upper half of a binary32
struct float8_e4m3 { uint8 bits; };    // OCP E4M3: no infinity, largest 448
struct float8_e5m2 { uint8 bits; };    // OCP E5M2: infinity, largest finite 57344

template <bool C, class A, class B> struct choose { using type = A; };
template <class A, class B> struct choose<false, A, B> { using type = B; };
template <bool C, class A, class B> using choose_t = typename choose<C, A, B>::type;

template <class A, class B> struct same { static constexpr bool value = false; };
template <class A> struct same<A, A> { static constexpr bool value = true; };

template <class To, class From>
WARPCC_FN To bit_copy(From from) {
  static_assert(sizeof(To) == sizeof(From), "bits are copied between types of one size");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

// ---- what is known of a type -----------------------------------------------------------------

enum kind { kind_bool, kind_integer, kind_float };

// rank: which of two floating types of one family wins; bits; whether it has a sign.
template <class T> struct traits;
#define WARPCC_TYPE(T, K, BITS, SIGNED, COMPUTE)             \
  template <> struct traits<T> {                             \
    static constexpr kind type = K;                          \
    static constexpr int bits = BITS;                        \
    static constexpr bool is_signed = SIGNED;                \
    using compute = COMPUTE;                                 \
  };
WARPCC_TYPE(bool, kind_bool, 1, false, bool)
WARPCC_TYPE(boolean, kind_bool, 1, false, bool)
WARPCC_TYPE(int8, kind_integer, 8, true, int8)
WARPCC_TYPE(uint8, kind_integer, 8, false, uint8)
WARPCC_TYPE(int16, kind_integer, 16, true, int16)
WARPCC_TYPE(uint16, kind_integer, 16, false, uint16)
WARPCC_TYPE(int32, kind_integer, 32, true, int32)
WARPCC_TYPE(uint32, kind_integer, 32, false, uint32)
WARPCC_TYPE(int64, kind_integer, 64, true, int64)
WARPCC_TYPE(uint64, kind_integer, 64, false, uint64)
WARPCC_TYPE(half, kind_float, 16, true, float)
WARPCC_TYPE(bfloat16, kind_float, 16, true, float)
WARPCC_TYPE(float8_e4m3, kind_float, 8, true, float)
WARPCC_TYPE(float8_e5m2, kind_float, 8, true, float)
WARPCC_TYPE(float, kind_float, 32, true, float)
WARPCC_TYPE(double, kind_float, 64, true, double)
#undef WARPCC_TYPE

template <class T> constexpr bool is_float = traits<T>::type == kind_float;
template <class T> constexpr bool is_integer = traits<T>::type == kind_integer;
template <class T> constexpr bool is_bool = traits<T>::type == kind_bool;

/// The type in which values of `T` are held and computed: half, bfloat16 and fp8 in float.
template <class T> using compute_t = typename traits<T>::compute;

/// The type of functions whose value is no integer, such as `exp`: float for what float holds
/// exactly (bool and up to 16 bits), double for wider integers.
template <class T>
using real_t = choose_t<is_float<T>, compute_t<T>, choose_t<(traits<T>::bits <= 16), float, double>>;

/// bool counts as an integer in arithmetic: true + true is 2.
template <class T> using number_t = choose_t<is_bool<T>, int32, compute_t<T>>;

/// In what a sum over many values is kept: integers in 64 bits, others in their compute type.
template <class T>
using accumulate_t =
    choose_t<is_float<T>, compute_t<T>, choose_t<traits<T>::is_signed, int64, uint64>>;

template <int BITS, bool SIGNED> struct integer_of;
template <> struct integer_of<8, true> { using type = int8; };
template <> struct integer_of<8, false> { using type = uint8; };
template <> struct integer_of<16, true> { using type = int16; };
template <> struct integer_of<16, false> { using type = uint16; };
template <> struct integer_of<32, true> { using type = int32; };
template <> struct integer_of<32, false> { using type = uint32; };
template <> struct integer_of<64, true> { using type = int64; };
template <> struct integer_of<64, false> { using type = uint64; };

/// Two integers: the wider one; of unlike signs, a signed type that holds both (int64 at most).
template <class A, class B> struct mixed_integers {
  static constexpr int a = traits<A>::bits, b = traits<B>::bits;
  static constexpr bool sa = traits<A>::is_signed, sb = traits<B>::is_signed;
  static constexpr int widest = a > b ? a : b;
  static constexpr bool fits = sa == sb || (sa ? a > b : b > a);
  static constexpr int bits = fits ? widest : (widest < 64 ? 2 * widest : 64);
  using type = typename integer_of<bits, (sa || sb)>::type;
};
template <class A, class B> struct mixed_floats {
  static constexpr int a = traits<A>::bits, b = traits<B>::bits;
  // Of one size and not the same (half and bfloat16, the two fp8): neither holds the other.
  using type = choose_t<same<A, B>::value, A, choose_t<(a == b), float, choose_t<(a > b), A, B>>>;
};
template <class A, class B, kind KA, kind KB> struct mixed;
template <class A, class B> struct mixed<A, B, kind_bool, kind_bool> { using type = A; };
template <class A, class B> struct mixed<A, B, kind_bool, kind_integer> { using type = B; };
template <class A, class B> struct mixed<A, B, kind_bool, kind_float> { using type = B; };
template <class A, class B> struct mixed<A, B, kind_integer, kind_bool> { using type = A; };
template <class A, class B> struct mixed<A, B, kind_float, kind_bool> { using type = A; };
template <class A, class B> struct mixed<A, B, kind_integer, kind_float> { using type = B; };
template <class A, class B> struct mixed<A, B, kind_float, kind_integer> { using type = A; };
template <class A, class B> struct mixed<A, B, kind_integer, kind_integer> : mixed_integers<A, B> {};
template <class A, class B> struct mixed<A, B, kind_float, kind_float> : mixed_floats<A, B> {};

/// The type of a result of values of two types: a floating one before integers before bool.
template <class A, class B>
using mixed_type = typename mixed<A, B, traits<A>::type, traits<B>::type>::type;

// ---- from storage to compute -----------------------------------------------------------------

WARPCC_FN bool is_nan(float x) { return (bit_copy<uint32>(x) & 0x7fffffffu) > 0x7f800000u; }
WARPCC_FN bool is_nan(double x) {
  return (bit_copy<uint64>(x) & 0x7fffffffffffffffull) > 0x7ff0000000000000ull;
}
WARPCC_FN bool is_inf(float x) { return (bit_copy<uint32>(x) & 0x7fffffffu) == 0x7f800000u; }
WARPCC_FN bool is_inf(double x) {
  return (bit_copy<uint64>(x) & 0x7fffffffffffffffull) == 0x7ff0000000000000ull;
}
template <class T> WARPCC_FN bool is_nan(T) { return false; }
template <class T> WARPCC_FN bool is_inf(T) { return false; }

/// The low bits of a sum, difference or product as a W. Short ones are kept in a register of 32 bits until then, and the
/// compiler is not told what it holds: of a sum that is compared with 0 it makes a negation in 16 bits, and ptxas of CUDA 13.0
/// takes that of -32768 to be 32768 (that of 13.5 does not).
template <class W> WARPCC_FN W wrapped(uint64 value) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(W) < 4) {
    uint32 low = (uint32)value;
    asm("" : "+r"(low));
    return (W)low;
  }
#endif
  return (W)value;
}

WARPCC_FN float half_bits_to_float(uint16 bits) {
#if defined(__CUDA_ARCH__)
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
#else
  const uint32 sign = (uint32)(bits & 0x8000) << 16, rest = bits & 0x7fff;
  if (rest > 0x7c00) return bit_copy<float>(sign | 0x7fc00000u);
  if (rest == 0x7c00) return bit_copy<float>(sign | 0x7f800000u);
  if (rest >= 0x0400) return bit_copy<float>(sign | ((rest << 13) + (112u << 23)));
  const float small = (float)rest * 5.9604644775390625e-08f;  // 2^-24
  return sign ? -small : small;
#endif
}

WARPCC_FN float widen(half x) { return half_bits_to_float(x.bits); }
WARPCC_FN float widen(bfloat16 x) { return bit_copy<float>((uint32)x.bits << 16); }
// An E5M2 is the upper byte of a half.
WARPCC_FN float widen(float8_e5m2 x) { return half_bits_to_float((uint16)(x.bits << 8)); }
WARPCC_FN float widen(float8_e4m3 x) {
  const uint32 rest = x.bits & 0x7f, sign = (uint32)(x.bits & 0x80) << 24;
  if (rest == 0x7f) return bit_copy<float>(sign | 0x7fc00000u);
  // Its fields in a half's places have a bias too large by 8; 2^8 puts that right.
  return half_bits_to_float((uint16)((x.bits & 0x80) << 8 | rest << 7)) * 256.0f;
}
WARPCC_FN bool widen(boolean x) { return x.bits != 0; }
template <class T> WARPCC_FN T widen(T x) { return x; }

// ---- from compute to storage -----------------------------------------------------------------

// What is narrowed again is first rounded to odd: a float that is not exact has its last bit set,
// so that rounding it to at most 22 bits gives what rounding the value itself would.
WARPCC_FN float to_odd(double x) {
  const float near = (float)x;
  if (is_nan(x) || is_inf(x)) return near;
  uint32 bits = bit_copy<uint32>(near);
  const double back = (double)near;
  if (back == x) return near;
  // Of the two floats around x, the one whose last bit is set.
  if (bits & 1) return near;
  const bool beyond = (x < 0 ? -back : back) > (x < 0 ? -x : x);
  return bit_copy<float>(beyond ? bits - 1 : bits + 1);
}
WARPCC_FN float to_odd(uint64 x) {
  uint64 lost = 0;
  float scale = 1;
  while (x >= (1ull << 24)) {
    lost |= x & 0xff;
    x >>= 8;
    scale *= 256.0f;
  }
  // x may have 17 bits only: two more than a bfloat16 needs, and a bit for what was lost.
  return (float)(uint32)(x | (lost != 0)) * scale;
}
WARPCC_FN float to_odd(int64 x) { return x < 0 ? -to_odd(0ull - (uint64)x) : to_odd((uint64)x); }
WARPCC_FN float to_odd(int32 x) { return to_odd((double)x); }
WARPCC_FN float to_odd(uint32 x) { return to_odd((double)x); }
template <class T> WARPCC_FN float to_odd(T x) { return (float)x; }

// A float's bits with EXPONENT and MANTISSA bits, to the nearest, ties to even, not looking at
// infinity, NaN and overflow: `limit` and above come out as at least the pattern of `limit`.
template <int EXPONENT, int MANTISSA>
WARPCC_FN uint32 narrow_magnitude(uint32 magnitude) {
  constexpr int bias = (1 << (EXPONENT - 1)) - 1, shift = 23 - MANTISSA;
  if (magnitude < (uint32)(128 - bias) << 23) {
    // Subnormal there: count in units of its smallest value, 2^(1 - bias - MANTISSA). Adding
    // 2^23 units leaves the rounded count in the low bits.
    constexpr uint32 units = (uint32)(127 + bias - 1 + MANTISSA) << 23;
    const float counted = bit_copy<float>(magnitude) * bit_copy<float>(units) + 8388608.0f;
    return bit_copy<uint32>(counted) & 0x7fffff;
  }
  const uint32 rounded = magnitude + ((1u << (shift - 1)) - 1) + ((magnitude >> shift) & 1);
  return (rounded >> shift) - ((uint32)(127 - bias) << MANTISSA);
}

WARPCC_FN uint16 float_to_half_bits(float x) {
#if defined(__CUDA_ARCH__)
  uint16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
#else
  const uint32 all = bit_copy<uint32>(x), rest = all & 0x7fffffffu;
  const uint16 sign = (uint16)(all >> 16 & 0x8000);
  if (rest > 0x7f800000u) return 0x7fff;
  if (rest >= 0x477ff000u) return sign | 0x7c00;  // 65520 and above
  return (uint16)(sign | narrow_magnitude<5, 10>(rest));
#endif
}
WARPCC_FN uint16 float_to_bfloat16_bits(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
#else
  const uint32 bits = bit_copy<uint32>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return (uint16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
}
// Both fp8 saturate, infinity too, as the hardware's conversion does.
WARPCC_FN uint8 float_to_e4m3_bits(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint16 bits;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(0.0f), "f"(x));
  return (uint8)bits;
#else
  const uint32 all = bit_copy<uint32>(x), rest = all & 0x7fffffffu;
  const uint8 sign = (uint8)(all >> 24 & 0x80);
  if (rest > 0x7f800000u) return 0x7f;
  if (rest >= 0x43e00000u) return sign | 0x7e;  // 448 and above
  return (uint8)(sign | narrow_magnitude<4, 3>(rest));
#endif
}
WARPCC_FN uint8 float_to_e5m2_bits(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint16 bits;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(0.0f), "f"(x));
  return (uint8)bits;
#else
  const uint32 all = bit_copy<uint32>(x), rest = all & 0x7fffffffu;
  const uint8 sign = (uint8)(all >> 24 & 0x80);
  if (rest > 0x7f800000u) return 0x7f;
  if (rest >= 0x47600000u) return sign | 0x7b;  // 57344 and above
  return (uint8)(sign | narrow_magnitude<5, 2>(rest));
#endif
}

// Floating to integer: towards zero, held to the type's range, NaN to 0.
template <class To, class From>
WARPCC_FN To float_to_integer(From x) {
  constexpr bool with_sign = traits<To>::is_signed;
  constexpr int bits = traits<To>::bits - (with_sign ? 1 : 0);
  constexpr From above = (From)(1ull << (bits - 1)) * 2;  // the first value too large, exact
  constexpr To largest = (To)(~0ull >> (64 - bits));
  constexpr To smallest = with_sign ? (To)(-largest - 1) : (To)0;
  if (!(x < above)) return is_nan(x) ? (To)0 : largest;
  if (!(x > (with_sign ? -above : (From)0))) return smallest;
  return (To)x;
}

template <class To, class From, kind TO = traits<To>::type, kind FROM = traits<From>::type>
struct conversion {  // integer or bool to integer wraps; to float and double rounds
  WARPCC_MEMBER static To of(From x) { return (To)x; }
};
template <class To, class From>
struct conversion<To, From, kind_integer, kind_float> {
  WARPCC_MEMBER static To of(From x) { return float_to_integer<To>(x); }
};
template <class From, kind FROM> struct conversion<bool, From, kind_bool, FROM> {
  WARPCC_MEMBER static bool of(From x) { return x != (From)0; }  // NaN is true
};
template <class From, kind FROM> struct conversion<boolean, From, kind_bool, FROM> {
  WARPCC_MEMBER static boolean of(From x) { return boolean{(uint8)(x != (From)0)}; }
};
template <class From, kind FROM> struct conversion<half, From, kind_float, FROM> {
  WARPCC_MEMBER static half of(From x) { return half{float_to_half_bits(to_odd(x))}; }
};
template <class From, kind FROM> struct conversion<bfloat16, From, kind_float, FROM> {
  WARPCC_MEMBER static bfloat16 of(From x) { return bfloat16{float_to_bfloat16_bits(to_odd(x))}; }
};
template <class From, kind FROM> struct conversion<float8_e4m3, From, kind_float, FROM> {
  WARPCC_MEMBER static float8_e4m3 of(From x) { return float8_e4m3{float_to_e4m3_bits(to_odd(x))}; }
};
template <class From, kind FROM> struct conversion<float8_e5m2, From, kind_float, FROM> {
  WARPCC_MEMBER static float8_e5m2 of(From x) { return float8_e5m2{float_to_e5m2_bits(to_odd(x))}; }
};

/// A value of any type as a `To`: widened first, then rounded, wrapped or held to its range once.
template <class To, class From>
WARPCC_FN To convert(From x) {
  return conversion<To, compute_t<From>>::of(widen(x));
}

// ---- many values at once -------------------------------------------------------------------------

// Whether the device converts two values of a type in one instruction.
template <class T> struct pairs {
  static constexpr bool read = false, written = false;
};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define WARPCC_PAIR_16(T, NAME)                                                            \
  template <> struct pairs<T> {                                                            \
    static constexpr bool read = false, written = true;                                    \
    WARPCC_MEMBER static void write(float a, float b, T* to) {                             \
      uint32 both;                                                                         \
      asm("cvt.rn." NAME ".f32 %0, %1, %2;" : "=r"(both) : "f"(b), "f"(a));                \
      memcpy(to, &both, sizeof both);                                                      \
    }                                                                                      \
  };
WARPCC_PAIR_16(half, "f16x2")
WARPCC_PAIR_16(bfloat16, "bf16x2")
#undef WARPCC_PAIR_16
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define WARPCC_PAIR_8(T, NAME)                                                             \
  template <> struct pairs<T> {                                                            \
    static constexpr bool read = true, written = true;                                     \
    WARPCC_MEMBER static void read_two(const T* from, float* to) {                         \
      uint16 both;                                                                         \
      uint32 halves;                                                                       \
      memcpy(&both, from, sizeof both);                                                    \
      asm("cvt.rn.f16x2." NAME " %0, %1;" : "=r"(halves) : "h"(both));                     \
      to[0] = half_bits_to_float((uint16)halves);                                          \
      to[1] = half_bits_to_float((uint16)(halves >> 16));                                  \
    }                                                                                      \
    WARPCC_MEMBER static void write(float a, float b, T* to) {                             \
      uint16 both;                                                                         \
      asm("cvt.rn.satfinite." NAME ".f32 %0, %1, %2;" : "=h"(both) : "f"(b), "f"(a));      \
      memcpy(to, &both, sizeof both);                                                      \
    }                                                                                      \
  };
WARPCC_PAIR_8(float8_e4m3, "e4m3x2")
WARPCC_PAIR_8(float8_e5m2, "e5m2x2")
#undef WARPCC_PAIR_8
#endif

/// Stored values as they are computed with.
template <int N, class T>
WARPCC_FN void widen_all(const T (&from)[N], compute_t<T> (&to)[N]) {
  if constexpr (pairs<T>::read && N % 2 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 2) pairs<T>::read_two(from + i, to + i);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = widen(from[i]);
  }
}

/// Computed values as they are stored, each as `convert` has it.
template <int N, class T, class V>
WARPCC_FN void narrow_all(const V (&from)[N], T (&to)[N]) {
  if constexpr (pairs<T>::written && N % 2 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 2) pairs<T>::write(to_odd(from[i]), to_odd(from[i + 1]), to + i);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = convert<T>(from[i]);
  }
}

}  // namespace warpcc
#endif
