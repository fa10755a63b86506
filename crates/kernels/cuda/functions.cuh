// The functions: of one, two or three values of any types, each stating in what it is computed.
//
// `number`: the arguments' mixed type, bool as int32, integers wrap. `same`: the mixed type, bool
// too. `real`: float or double. Comparisons compare in the mixed type and give bool.
// docs/kernels.md has the table; crates/kernels/src/functions.rs names each one of them.
#ifndef WARPCC_FUNCTIONS_CUH
#define WARPCC_FUNCTIONS_CUH

namespace warpcc {
namespace op {

template <class A> using same_t = compute_t<A>;

#define WARPCC_1(NAME, WORK, VALUE)                                           \
  template <class A> WARPCC_FN WORK<A> NAME(A a) {                            \
    using W = WORK<A>;                                                        \
    const W x = convert<W>(a);                                                \
    return (W)(VALUE);                                                        \
  }
#define WARPCC_2(NAME, WORK, VALUE)                                           \
  template <class A, class B> WARPCC_FN WORK<mixed_type<A, B>> NAME(A a, B b) { \
    using W = WORK<mixed_type<A, B>>;                                         \
    const W x = convert<W>(a), y = convert<W>(b);                             \
    return (W)(VALUE);                                                        \
  }
#define WARPCC_3(NAME, WORK, VALUE)                                           \
  template <class A, class B, class C>                                        \
  WARPCC_FN WORK<mixed_type<mixed_type<A, B>, C>> NAME(A a, B b, C c) {       \
    using W = WORK<mixed_type<mixed_type<A, B>, C>>;                          \
    const W x = convert<W>(a), y = convert<W>(b), z = convert<W>(c);          \
    return (W)(VALUE);                                                        \
  }
#define WARPCC_TEST_1(NAME, VALUE)                                            \
  template <class A> WARPCC_FN bool NAME(A a) {                               \
    using W = compute_t<A>;                                                   \
    const W x = convert<W>(a);                                                \
    return (VALUE);                                                           \
  }
#define WARPCC_TEST_2(NAME, VALUE)                                            \
  template <class A, class B> WARPCC_FN bool NAME(A a, B b) {                 \
    using W = compute_t<mixed_type<A, B>>;                                    \
    const W x = convert<W>(a), y = convert<W>(b);                             \
    return (VALUE);                                                           \
  }

// ---- the mathematics library in float and in double --------------------------------------------

namespace in {
#define WARPCC_MATH_1(NAME, FLOAT, DOUBLE)               \
  WARPCC_FN float NAME(float x) { return FLOAT(x); }     \
  WARPCC_FN double NAME(double x) { return DOUBLE(x); }
#define WARPCC_MATH_2(NAME, FLOAT, DOUBLE)                           \
  WARPCC_FN float NAME(float x, float y) { return FLOAT(x, y); }     \
  WARPCC_FN double NAME(double x, double y) { return DOUBLE(x, y); }
WARPCC_MATH_1(exp, ::expf, ::exp)
WARPCC_MATH_1(exp2, ::exp2f, ::exp2)
WARPCC_MATH_1(expm1, ::expm1f, ::expm1)
WARPCC_MATH_1(log, ::logf, ::log)
WARPCC_MATH_1(log10, ::log10f, ::log10)
WARPCC_MATH_1(log2, ::log2f, ::log2)
WARPCC_MATH_1(log1p, ::log1pf, ::log1p)
WARPCC_MATH_1(sin, ::sinf, ::sin)
WARPCC_MATH_1(cos, ::cosf, ::cos)
WARPCC_MATH_1(tan, ::tanf, ::tan)
WARPCC_MATH_1(asin, ::asinf, ::asin)
WARPCC_MATH_1(acos, ::acosf, ::acos)
WARPCC_MATH_1(atan, ::atanf, ::atan)
WARPCC_MATH_1(sinh, ::sinhf, ::sinh)
WARPCC_MATH_1(cosh, ::coshf, ::cosh)
WARPCC_MATH_1(asinh, ::asinhf, ::asinh)
WARPCC_MATH_1(acosh, ::acoshf, ::acosh)
WARPCC_MATH_1(atanh, ::atanhf, ::atanh)
WARPCC_MATH_1(sqrt, ::sqrtf, ::sqrt)
WARPCC_MATH_1(rsqrt, ::rsqrtf, ::rsqrt)
WARPCC_MATH_1(cbrt, ::cbrtf, ::cbrt)
WARPCC_MATH_1(rcbrt, ::rcbrtf, ::rcbrt)
WARPCC_MATH_1(erf, ::erff, ::erf)
WARPCC_MATH_1(erfc, ::erfcf, ::erfc)
WARPCC_MATH_1(erfinv, ::erfinvf, ::erfinv)
WARPCC_MATH_1(tgamma, ::tgammaf, ::tgamma)
WARPCC_MATH_1(lgamma, ::lgammaf, ::lgamma)
WARPCC_MATH_1(round, ::roundf, ::round)
WARPCC_MATH_1(rint, ::rintf, ::rint)
WARPCC_MATH_1(floor, ::floorf, ::floor)
WARPCC_MATH_1(ceil, ::ceilf, ::ceil)
WARPCC_MATH_1(trunc, ::truncf, ::trunc)
WARPCC_MATH_1(fabs, ::fabsf, ::fabs)
WARPCC_MATH_2(pow, ::powf, ::pow)
WARPCC_MATH_2(hypot, ::hypotf, ::hypot)
WARPCC_MATH_2(atan2, ::atan2f, ::atan2)
WARPCC_MATH_2(fmod, ::fmodf, ::fmod)
WARPCC_MATH_2(copysign, ::copysignf, ::copysign)
WARPCC_FN float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
WARPCC_FN double fma(double x, double y, double z) { return ::fma(x, y, z); }
WARPCC_FN float scalbn(float x, int n) { return ::scalbnf(x, n); }
WARPCC_FN double scalbn(double x, int n) { return ::scalbn(x, n); }
#undef WARPCC_MATH_1
#undef WARPCC_MATH_2

WARPCC_FN bool sign_bit(float x) { return bit_copy<uint32>(x) >> 31; }
WARPCC_FN bool sign_bit(double x) { return bit_copy<uint64>(x) >> 63; }

// Integers wrap: done without signs, where overflow is defined.
template <class W> WARPCC_FN W add(W x, W y) {
  if constexpr (is_integer<W>) return wrapped<W>((uint64)x + (uint64)y);
  else return x + y;
}
template <class W> WARPCC_FN W sub(W x, W y) {
  if constexpr (is_integer<W>) return wrapped<W>((uint64)x - (uint64)y);
  else return x - y;
}
template <class W> WARPCC_FN W mul(W x, W y) {
  if constexpr (is_integer<W>) return wrapped<W>((uint64)x * (uint64)y);
  else return x * y;
}
/// x * y + z: of floating types rounded once, so that what the compiler would fuse or not gives the same.
template <class W> WARPCC_FN W multiply_add(W x, W y, W z) {
  if constexpr (is_integer<W>) return add<W>(mul<W>(x, y), z);
  else return fma(x, y, z);
}

/// Rounds a / b down. By zero: integers give 0, floating ones what a / b gives.
template <class W> WARPCC_FN W floor_divide(W a, W b) {
  if constexpr (is_integer<W>) {
    if (b == 0) return 0;
    if constexpr (traits<W>::is_signed) {
      if (b == (W)-1) return sub<W>(0, a);
    }
    const W q = (W)(a / b);
    return a % b != 0 && (a < 0) != (b < 0) ? (W)(q - 1) : q;
  } else {
    if (b == 0) return a / b;
    const W rest = fmod(a, b);
    W q = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0)) q -= 1;
    if (q == 0) return copysign((W)0, a / b);
    const W whole = floor(q);
    return q - whole > (W)0.5 ? whole + 1 : whole;  // q is a whole number but for rounding
  }
}
/// What floor_divide leaves; of b's sign. By zero: integers give 0, floating ones NaN.
template <class W> WARPCC_FN W mod(W a, W b) {
  if constexpr (is_integer<W>) {
    if (b == 0) return 0;
    if constexpr (traits<W>::is_signed) {
      if (b == (W)-1) return 0;
    }
    const W rest = (W)(a % b);
    return rest != 0 && (rest < 0) != (b < 0) ? (W)(rest + b) : rest;
  } else {
    const W rest = fmod(a, b);
    if (rest == 0) return copysign((W)0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
  }
}
/// What division towards zero leaves; of a's sign.
template <class W> WARPCC_FN W remainder(W a, W b) {
  if constexpr (is_integer<W>) {
    if (b == 0) return 0;
    if constexpr (traits<W>::is_signed) {
      if (b == (W)-1) return 0;
    }
    return (W)(a % b);
  } else {
    return fmod(a, b);
  }
}
/// Integers by squaring, wrapping; a negative exponent gives 1 / x^|y| towards zero (0 of 0).
template <class W> WARPCC_FN W power(W x, W y) {
  if constexpr (is_integer<W>) {
    if constexpr (traits<W>::is_signed) {
      if (y < 0) return x == 1 ? (W)1 : x == (W)-1 ? ((y & 1) ? (W)-1 : (W)1) : (W)0;
    }
    uint64 base = (uint64)x, result = 1;
    for (uint64 left = (uint64)y; left; left >>= 1) {
      if (left & 1) result *= base;
      base *= base;
    }
    return (W)result;
  } else {
    return pow(x, y);
  }
}
/// 0 - x of an integer below 0. A compiler would make `abs` of it and the question, and ptxas takes
/// no `abs` for negative, though that of the smallest integer is: it then narrows it to a large
/// positive number. So it is not told what this is.
template <class W> WARPCC_FN W turned_around(W x) {
#if defined(__CUDA_ARCH__)
  W result;
  if constexpr (sizeof(W) == 8) {
    asm("neg.s64 %0, %1;" : "=l"(result) : "l"(x));
    return result;
  } else if constexpr (sizeof(W) == 4) {
    asm("neg.s32 %0, %1;" : "=r"(result) : "r"(x));
    return result;
  }
#endif
  return sub<W>(0, x);
}
template <class W> WARPCC_FN uint64 magnitude(W x) {
  return x < 0 ? (uint64)turned_around((int64)x) : (uint64)x;
}
WARPCC_FN uint64 gcd(uint64 a, uint64 b) {
  while (b != 0) {
    const uint64 rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
template <class W> WARPCC_FN W lcm(W x, W y) {
  const uint64 a = magnitude(x), b = magnitude(y);
  return a == 0 || b == 0 ? (W)0 : (W)(a / gcd(a, b) * b);
}
template <class W> WARPCC_FN W shift_left(W x, W by) {
  constexpr W width = traits<W>::bits;
  return by < 0 || by >= width ? (W)0 : (W)((uint64)x << by);
}
template <class W> WARPCC_FN W shift_right(W x, W by) {
  constexpr W width = traits<W>::bits;
  if (by < 0 || by >= width) return x < 0 ? (W)-1 : (W)0;
  return (W)(x >> by);
}

/// x 2^y without overflow on the way, where y is whole.
template <class W> WARPCC_FN W ldexp(W x, W y) {
  if (y == rint(y) && y >= -4096 && y <= 4096) return scalbn(x, (int)y);
  return x * exp2(y);
}
/// 2^x and 1 / x by the hardware's own instructions: within two units in the last place and one;
/// what is subnormal is 0.
WARPCC_FN float quick_exp2(float x) {
#if defined(__CUDA_ARCH__)
  float value;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
#else
  return ::exp2f(x);
#endif
}
WARPCC_FN float quick_reciprocal(float x) {
#if defined(__CUDA_ARCH__)
  float value;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
#else
  return 1 / x;
#endif
}
/// In float, from 0.6 on 1 - 2 / (exp(2 |x|) + 1), below x + x^3 p(x^2), p fitted for 1e-7: within
/// four units in the last place. CUDA's own has a bound of its own for what is near 1, which this
/// has not: the half-wide types wait for arithmetic there.
WARPCC_FN double tanh(double x) { return ::tanh(x); }
WARPCC_FN float tanh(float x) {
  const float a = ::fabsf(x), square = x * x;
  const float r = quick_reciprocal(quick_exp2(a * 2.88539f) + 1);  // 2 log2(e); of infinity, 0
  float p = 0.015612614f;
  p = fma(p, square, -0.052211795f);
  p = fma(p, square, 0.13313116f);
  p = fma(p, square, -0.33332598f);
  // The zero added makes one of -0, so that tanh(-0) is -0.
  const float near = fma(x, fma(p, square, 0.0f), x);
  return a < 0.6f ? near : ::copysignf(fma(-2.0f, r, 1.0f), x);
}
template <class W> WARPCC_FN W sigmoid(W x) {
  const W e = exp(-fabs(x));  // never overflows; the small side keeps its digits
  if constexpr (same<W, float>::value) {
    const W r = quick_reciprocal(1 + e);  // 1 + e is from 1 to 2
    return x >= 0 ? r : e * r;
  }
  return (x >= 0 ? (W)1 : e) / (1 + e);
}
template <class W> WARPCC_FN W softrelu(W x) {
  return (x > 0 ? x : x < 0 ? (W)0 : x) + log1p(exp(-fabs(x)));
}
template <class W> WARPCC_FN W log_sigmoid(W x) {
  return (x < 0 ? x : x > 0 ? (W)0 : x) - log1p(exp(-fabs(x)));
}
/// tanh(softrelu(x)) = e (e + 2) / (e (e + 2) + 2) with e = exp(x).
template <class W> WARPCC_FN W tanh_softrelu(W x) {
  if (x > 20) return 1;
  const W e = exp(x), n = e * (e + 2);
  return n / (n + 2);
}
/// x times a factor that goes to zero faster than x grows: 0, not NaN, at minus infinity.
template <class W> WARPCC_FN W times_vanishing(W x, W factor) {
  return factor == 0 ? copysign((W)0, x) : x * factor;
}
/// exp(-x^2), with what rounding the square loses put back.
template <class W> WARPCC_FN W exp_minus_square(W x) {
  const W square = x * x;
  if (is_inf(square)) return 0;
  const W e = exp(-square);
  return e - e * fma(x, x, -square);
}
/// The larger of a value and 0; NaN of NaN. Of -0 and 0, 0.
template <class W> WARPCC_FN W above_zero(W x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (same<W, float>::value) {
    float larger;
    asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(larger) : "f"(x));
    return larger;
  }
#endif
  return x > 0 || is_nan(x) ? x : (W)0;
}
/// The normal distribution's F: its small side keeps its digits.
template <class W> WARPCC_FN W normal(W x) {
  return (W)0.5 * erfc(x * (W)-0.70710678118654752440);
}
template <class W> WARPCC_FN W normal_density(W x) {
  return (W)0.39894228040143267794 * exp_minus_square(x * (W)0.70710678118654752440);
}
/// The inside of gelu's approximation by tanh.
template <class W> WARPCC_FN W gelu_inside(W x) {
  return (W)0.79788456080286535588 * x * (1 + (W)0.044715 * x * x);
}
/// x F(x), F the normal distribution: max(x, 0) - |x| F(-|x|), which keeps its digits on both sides.
WARPCC_FN double gelu(double x) { return times_vanishing(x, normal(x)); }
/// In float, F(-a) = t exp(-a^2 / 2 + p(t)) with t = 1 / (1 + 0.4 a): the form of the erfc of
/// Numerical Recipes (6.2.2), p fitted anew for F over 0 <= a <= 14.5, within 9e-8. Half the
/// exponent is raised, and its power taken twice: nothing is subnormal before the result is.
WARPCC_FN float gelu(float x) {
  const float a = ::fminf(::fabsf(x), 20.0f);  // F(-20) is 0; of NaN, 20
  const float t = quick_reciprocal(fma(a, 0.4f, 1.0f));
  float p = 0.13697298f;
  p = fma(p, t, -0.7014343f);
  p = fma(p, t, 1.4006313f);
  p = fma(p, t, -1.2576331f);
  p = fma(p, t, 0.38713765f);
  p = fma(p, t, -0.1292398f);
  p = fma(p, t, 0.2680216f);
  p = fma(p, t, 0.71930504f);
  p = fma(p, t, fma(a * a, -0.36067376f, -1.3237613f));  // -1/4 log2(e)
  const float e = quick_exp2(p);
  return fma(-(a * t * e), e, above_zero(x));
}
/// x sigmoid(2 u), u the inside: max(x, 0) - |x| e^2 / (1 + e^2) with e = exp(-|u|).
WARPCC_FN double gelu_tanh(double x) {
  return times_vanishing(x, sigmoid(2 * gelu_inside(x)));
}
WARPCC_FN float gelu_tanh(float x) {
  const float a = ::fminf(::fabsf(x), 20.0f);
  // sqrt(2 / pi) log2(e), and 0.044715 times that.
  const float e = quick_exp2(a * fma(a * a, -0.05147162f, -1.1511043f));
  return fma(-(a * e * quick_reciprocal(fma(e, e, 1.0f))), e, above_zero(x));
}
/// x sigmoid(x) = max(x, 0) - |x| e / (1 + e) with e = exp(-|x|).
WARPCC_FN double silu(double x) { return times_vanishing(x, sigmoid(x)); }
WARPCC_FN float silu(float x) {
  const float a = ::fminf(::fabsf(x), 200.0f);  // exp(-200) is 0
  const float e = exp(-a);
  return fma(-(a * quick_reciprocal(1 + e)), e, above_zero(x));
}
/// Derivatives of x tanh(softrelu(x)), of x sigmoid(x) and of gelu_tanh.
template <class W> WARPCC_FN W mish_slope(W x) {
  const W t = tanh_softrelu(x), s = sigmoid(x);
  return t + times_vanishing(x, s * (1 - t) * (1 + t));
}
template <class W> WARPCC_FN W silu_slope(W x) {
  const W s = sigmoid(x);
  return s + times_vanishing(x, s * sigmoid(-x));
}
template <class W> WARPCC_FN W gelu_tanh_slope(W x) {
  const W u = 2 * gelu_inside(x), s = sigmoid(u);
  const W slope = (W)1.5957691216057307118 * (1 + (W)0.134145 * x * x);
  const W density = s * sigmoid(-u);
  return s + (density == 0 ? (W)0 : x * slope * density);
}
/// ln(e^x + e^y).
template <class W> WARPCC_FN W logaddexp(W x, W y) {
  if (x == y) return x + (W)0.69314718055994530942;  // equal infinities, too
  const W difference = x - y;
  if (is_nan(difference)) return difference;
  return (difference > 0 ? x : y) + log1p(exp(-fabs(difference)));
}
template <class W> WARPCC_FN W smooth_l1(W x, W scale) {
  const W bound = 1 / (scale * scale), a = fabs(x), t = x * scale;
  return a > bound ? a - (W)0.5 * bound : (W)0.5 * t * t;
}
// NaN of NaN: in float one instruction where the device has it.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define WARPCC_LARGEST(NAME, COMPARES, INSTRUCTION)                        \
  template <class W> WARPCC_FN W NAME(W x, W y) {                          \
    if constexpr (same<W, float>::value) {                                 \
      float which;                                                         \
      asm(INSTRUCTION " %0, %1, %2;" : "=f"(which) : "f"(x), "f"(y));      \
      return which;                                                        \
    }                                                                      \
    return x COMPARES y || is_nan(x) ? x : y;                              \
  }
#else
#define WARPCC_LARGEST(NAME, COMPARES, INSTRUCTION) \
  template <class W> WARPCC_FN W NAME(W x, W y) { return x COMPARES y || is_nan(x) ? x : y; }
#endif
WARPCC_LARGEST(maximum, >, "max.NaN.f32")
WARPCC_LARGEST(minimum, <, "min.NaN.f32")
#undef WARPCC_LARGEST
template <class W> WARPCC_FN W maximum_number(W x, W y) { return x > y || is_nan(y) ? x : y; }
template <class W> WARPCC_FN W minimum_number(W x, W y) { return x < y || is_nan(y) ? x : y; }
template <class W> WARPCC_FN W absolute(W x) {
  if constexpr (is_float<W>) return fabs(x);
  else return x < 0 ? turned_around(x) : x;
}
template <class W> WARPCC_FN W negative(W x) {
  if constexpr (is_float<W>) return -x;
  else return sub<W>(0, x);
}
template <class W> WARPCC_FN W sign(W x) {
  return x > 0 ? (W)1 : x < 0 ? (W)-1 : x == 0 ? (W)0 : x;
}
template <class W> WARPCC_FN W copy_sign(W x, W y) {
  if constexpr (is_float<W>) return copysign(x, y);
  else return (x < 0) == (y < 0) ? x : sub<W>(0, x);
}
#define WARPCC_ROUNDING(NAME)                     \
  template <class W> WARPCC_FN W whole_##NAME(W x) { \
    if constexpr (is_float<W>) return NAME(x);    \
    else return x;                                \
  }
WARPCC_ROUNDING(round)
WARPCC_ROUNDING(rint)
WARPCC_ROUNDING(floor)
WARPCC_ROUNDING(ceil)
WARPCC_ROUNDING(trunc)
#undef WARPCC_ROUNDING
}  // namespace in

// ---- of one value ------------------------------------------------------------------------------

WARPCC_1(identity, same_t, x)
WARPCC_1(negative, number_t, in::negative(x))
WARPCC_1(abs, number_t, in::absolute(x))
WARPCC_1(sign, number_t, in::sign(x))
WARPCC_1(square, number_t, in::mul<W>(x, x))
WARPCC_1(zero, number_t, 0)
WARPCC_1(one, number_t, 1)
WARPCC_1(negone, number_t, -1)
WARPCC_1(round_away, number_t, in::whole_round(x))
WARPCC_1(rint, number_t, in::whole_rint(x))
WARPCC_1(floor, number_t, in::whole_floor(x))
WARPCC_1(ceil, number_t, in::whole_ceil(x))
WARPCC_1(trunc, number_t, in::whole_trunc(x))
WARPCC_1(fix, number_t, in::whole_trunc(x))
WARPCC_1(relu, number_t, in::above_zero(x))

WARPCC_1(reciprocal, real_t, 1 / x)
WARPCC_1(exp, real_t, in::exp(x))
WARPCC_1(exp2, real_t, in::exp2(x))
WARPCC_1(expm1, real_t, in::expm1(x))
WARPCC_1(log, real_t, in::log(x))
WARPCC_1(log10, real_t, in::log10(x))
WARPCC_1(log2, real_t, in::log2(x))
WARPCC_1(log1p, real_t, in::log1p(x))
WARPCC_1(degrees, real_t, x * (W)57.295779513082320877)
WARPCC_1(radians, real_t, x * (W)0.017453292519943295769)
WARPCC_1(sin, real_t, in::sin(x))
WARPCC_1(cos, real_t, in::cos(x))
WARPCC_1(tan, real_t, in::tan(x))
WARPCC_1(arcsin, real_t, in::asin(x))
WARPCC_1(arccos, real_t, in::acos(x))
WARPCC_1(arctan, real_t, in::atan(x))
WARPCC_1(sinh, real_t, in::sinh(x))
WARPCC_1(cosh, real_t, in::cosh(x))
WARPCC_1(tanh, real_t, in::tanh(x))
WARPCC_1(arcsinh, real_t, in::asinh(x))
WARPCC_1(arccosh, real_t, in::acosh(x))
WARPCC_1(arctanh, real_t, in::atanh(x))
WARPCC_1(sqrt, real_t, in::sqrt(x))
WARPCC_1(rsqrt, real_t, in::rsqrt(x))
WARPCC_1(cbrt, real_t, in::cbrt(x))
WARPCC_1(rcbrt, real_t, in::rcbrt(x))
WARPCC_1(erf, real_t, in::erf(x))
WARPCC_1(erfc, real_t, in::erfc(x))
WARPCC_1(erfinv, real_t, in::erfinv(x))
WARPCC_1(gamma, real_t, in::tgamma(x))
WARPCC_1(gammaln, real_t, in::lgamma(x))
WARPCC_1(digamma, real_t, special::digamma(x))
WARPCC_1(trigamma, real_t, special::trigamma(x))

WARPCC_1(sigmoid, real_t, in::sigmoid(x))
WARPCC_1(log_sigmoid, real_t, in::log_sigmoid(x))
WARPCC_1(softrelu, real_t, in::softrelu(x))
WARPCC_1(softsign, real_t, is_inf(x) ? in::copysign((W)1, x) : x / (1 + in::fabs(x)))
WARPCC_1(mish, real_t, in::times_vanishing(x, in::tanh_softrelu(x)))
WARPCC_1(silu, real_t, in::silu(x))
WARPCC_1(gelu, real_t, in::gelu(x))
WARPCC_1(gelu_tanh, real_t, in::gelu_tanh(x))
WARPCC_1(selu, real_t,
         (W)1.0507009873554804934 * (x > 0 ? x : (W)1.6732632423543772848 * in::expm1(x)))

WARPCC_TEST_1(logical_not, x == (W)0)
WARPCC_TEST_1(nonzero, x != (W)0)
WARPCC_TEST_1(isnan, is_nan(x))
WARPCC_TEST_1(isinf, is_inf(x))
WARPCC_TEST_1(isposinf, is_inf(x) && x > (W)0)
WARPCC_TEST_1(isneginf, is_inf(x) && x < (W)0)
WARPCC_TEST_1(isfinite, !is_inf(x) && !is_nan(x))

/// Integers and bool only: every bit turned over; of bool, `not`.
template <class A> WARPCC_FN compute_t<A> bitwise_not(A a) {
  static_assert(!is_float<A>, "bitwise_not takes integers or bool");
  if constexpr (is_bool<A>) return !widen(a);
  else return (compute_t<A>)~a;
}

// ---- of two values -----------------------------------------------------------------------------

WARPCC_2(add, number_t, in::add<W>(x, y))
WARPCC_2(sub, number_t, in::sub<W>(x, y))
WARPCC_2(rsub, number_t, in::sub<W>(y, x))
WARPCC_2(mul, number_t, in::mul<W>(x, y))
WARPCC_2(div, real_t, x / y)
WARPCC_2(rdiv, real_t, y / x)
WARPCC_2(floor_divide, number_t, in::floor_divide(x, y))
WARPCC_2(rfloor_divide, number_t, in::floor_divide(y, x))
WARPCC_2(mod, number_t, in::mod(x, y))
WARPCC_2(rmod, number_t, in::mod(y, x))
WARPCC_2(fmod, number_t, in::remainder(x, y))
WARPCC_2(rfmod, number_t, in::remainder(y, x))
WARPCC_2(power, number_t, in::power(x, y))
WARPCC_2(rpower, number_t, in::power(y, x))
WARPCC_2(max, same_t, in::maximum(x, y))
WARPCC_2(min, same_t, in::minimum(x, y))
WARPCC_2(fmax, same_t, in::maximum_number(x, y))
WARPCC_2(fmin, same_t, in::minimum_number(x, y))
WARPCC_2(hypot, real_t, in::hypot(x, y))
WARPCC_2(arctan2, real_t, in::atan2(x, y))
WARPCC_2(rarctan2, real_t, in::atan2(y, x))
WARPCC_2(copysign, number_t, in::copy_sign(x, y))
WARPCC_2(rcopysign, number_t, in::copy_sign(y, x))
WARPCC_2(ldexp, real_t, in::ldexp(x, y))
WARPCC_2(rldexp, real_t, in::ldexp(y, x))
WARPCC_2(logaddexp, real_t, in::logaddexp(x, y))
WARPCC_2(smooth_l1, real_t, in::smooth_l1(x, y))
WARPCC_2(xelu, real_t, x > 0 ? x : x * y)
WARPCC_2(prelu, real_t, x > 0 ? x : x * y)
WARPCC_2(elu, real_t, x > 0 ? x : y * in::expm1(x))

WARPCC_TEST_2(equal, x == y)
WARPCC_TEST_2(not_equal, x != y)
WARPCC_TEST_2(greater, x > y)
WARPCC_TEST_2(greater_equal, x >= y)
WARPCC_TEST_2(less, x < y)
WARPCC_TEST_2(less_equal, x <= y)

// Each is looked at in its own type: a small number is not zero in a coarser one.
template <class A, class B> WARPCC_FN bool logical_and(A a, B b) { return nonzero(a) && nonzero(b); }
template <class A, class B> WARPCC_FN bool logical_or(A a, B b) { return nonzero(a) || nonzero(b); }
template <class A, class B> WARPCC_FN bool logical_xor(A a, B b) { return nonzero(a) != nonzero(b); }
template <class A, class B> WARPCC_FN compute_t<A> left(A a, B) { return widen(a); }
template <class A, class B> WARPCC_FN compute_t<B> right(A, B b) { return widen(b); }

#define WARPCC_BITS(NAME, WORK, VALUE)                                             \
  template <class A, class B> WARPCC_FN WORK<mixed_type<A, B>> NAME(A a, B b) {    \
    static_assert(!is_float<A> && !is_float<B>, #NAME " takes integers or bool");  \
    using W = WORK<mixed_type<A, B>>;                                              \
    const W x = convert<W>(a), y = convert<W>(b);                                  \
    return (W)(VALUE);                                                             \
  }
WARPCC_BITS(bitwise_and, same_t, x & y)
WARPCC_BITS(bitwise_or, same_t, x | y)
WARPCC_BITS(bitwise_xor, same_t, x ^ y)
WARPCC_BITS(left_shift, number_t, in::shift_left(x, y))
WARPCC_BITS(right_shift, number_t, in::shift_right(x, y))
WARPCC_BITS(gcd, number_t, in::gcd(in::magnitude(x), in::magnitude(y)))
WARPCC_BITS(lcm, number_t, in::lcm(x, y))
#undef WARPCC_BITS

// ---- of three values ---------------------------------------------------------------------------

WARPCC_3(clip, same_t, x < y ? y : x > z ? z : x)
WARPCC_3(fma, number_t, in::multiply_add<W>(x, y, z))
WARPCC_3(lerp, real_t, in::fma(z, y - x, x))
WARPCC_3(hard_sigmoid, real_t, in::minimum((W)1, in::maximum((W)0, in::fma(x, y, z))))
template <class A, class B, class C>
WARPCC_FN compute_t<mixed_type<B, C>> where(A a, B b, C c) {
  using W = compute_t<mixed_type<B, C>>;
  return nonzero(a) ? convert<W>(b) : convert<W>(c);
}

}  // namespace op
}  // namespace warpcc
#endif
