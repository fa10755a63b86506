// Gradients: `backward_f(gradient, x)` is the gradient times f'(x), where `out` is written, of
// what f gave; `f_grad(x, y)` and `f_rgrad(x, y)` are f's derivatives by its first and second
// argument. All in float or double.
#ifndef WARPCC_GRADIENTS_CUH
#define WARPCC_GRADIENTS_CUH

namespace warpcc {
namespace op {

#define WARPCC_BACKWARD(NAME, VALUE)                                             \
  template <class A, class B> WARPCC_FN real_t<mixed_type<A, B>> backward_##NAME(A a, B b) { \
    using W = real_t<mixed_type<A, B>>;                                          \
    const W grad = convert<W>(a), x = convert<W>(b);                             \
    const W out = x;                                                             \
    (void)out;                                                                   \
    return (W)(VALUE);                                                           \
  }

WARPCC_BACKWARD(relu, is_nan(x) ? x : x > 0 ? grad : (W)0)
WARPCC_BACKWARD(sigmoid, grad * out * (1 - out))
WARPCC_BACKWARD(log_sigmoid, grad * in::sigmoid(-x))
WARPCC_BACKWARD(softrelu, grad * in::sigmoid(x))
WARPCC_BACKWARD(softsign, grad / ((1 + in::fabs(x)) * (1 + in::fabs(x))))
WARPCC_BACKWARD(abs, grad * in::sign(x))
WARPCC_BACKWARD(exp, grad * in::exp(x))
WARPCC_BACKWARD(exp2, grad * in::exp2(x) * (W)0.69314718055994530942)
WARPCC_BACKWARD(expm1, grad * in::exp(x))
WARPCC_BACKWARD(log, grad / x)
WARPCC_BACKWARD(log10, grad / (x * (W)2.3025850929940456840))
WARPCC_BACKWARD(log2, grad / (x * (W)0.69314718055994530942))
WARPCC_BACKWARD(log1p, grad / (1 + x))
WARPCC_BACKWARD(sin, grad * in::cos(x))
WARPCC_BACKWARD(cos, -grad * in::sin(x))
WARPCC_BACKWARD(tan, grad * (out * out + 1))
WARPCC_BACKWARD(arcsin, grad / in::sqrt((1 - x) * (1 + x)))
WARPCC_BACKWARD(arccos, -grad / in::sqrt((1 - x) * (1 + x)))
WARPCC_BACKWARD(arctan, grad / (1 + x * x))
WARPCC_BACKWARD(degrees, grad * (W)57.295779513082320877)
WARPCC_BACKWARD(radians, grad * (W)0.017453292519943295769)
WARPCC_BACKWARD(sinh, grad * in::cosh(x))
WARPCC_BACKWARD(cosh, grad * in::sinh(x))
WARPCC_BACKWARD(tanh, grad * (1 - out) * (1 + out))
WARPCC_BACKWARD(arcsinh, grad / in::hypot(x, (W)1))
WARPCC_BACKWARD(arccosh, grad / (in::sqrt(x - 1) * in::sqrt(x + 1)))
WARPCC_BACKWARD(arctanh, grad / ((1 - x) * (1 + x)))
WARPCC_BACKWARD(sqrt, (W)0.5 * grad / out)
WARPCC_BACKWARD(rsqrt, (W)-0.5 * grad * in::rsqrt(x) / x)
WARPCC_BACKWARD(cbrt, grad / (3 * out * out))
WARPCC_BACKWARD(rcbrt, grad * in::rcbrt(x) / (-3 * x))
WARPCC_BACKWARD(square, 2 * x * grad)
WARPCC_BACKWARD(reciprocal, -(grad / x) / x)
WARPCC_BACKWARD(erf, (W)1.1283791670955125739 * in::exp_minus_square(x) * grad)
WARPCC_BACKWARD(erfinv, (W)0.88622692545275801365 * in::exp(out * out) * grad)
WARPCC_BACKWARD(gamma, grad * (in::tgamma(x) * (W)special::digamma(x)))
WARPCC_BACKWARD(gammaln, grad * (W)special::digamma(x))
WARPCC_BACKWARD(digamma, grad * (W)special::trigamma(x))
WARPCC_BACKWARD(mish, grad * in::mish_slope(x))
WARPCC_BACKWARD(silu, grad * in::silu_slope(x))
WARPCC_BACKWARD(gelu, grad * (in::normal(x) + in::times_vanishing(x, in::normal_density(x))))
WARPCC_BACKWARD(gelu_tanh, grad * in::gelu_tanh_slope(x))
WARPCC_BACKWARD(selu, grad * (x > 0 ? (W)1.0507009873554804934
                                    : (W)1.7580993408473768599 * in::exp(x)))
#undef WARPCC_BACKWARD

template <class A, class B, class C, class D>
WARPCC_FN real_t<mixed_type<A, B>> backward_clip(A a, B b, C lowest, D highest) {
  using W = real_t<mixed_type<A, B>>;
  using V = compute_t<mixed_type<mixed_type<B, C>, D>>;
  const V x = convert<V>(b);
  return x < convert<V>(lowest) || x > convert<V>(highest) ? (W)0 : convert<W>(a);
}

WARPCC_2(div_grad, real_t, 1 / y)
WARPCC_2(div_rgrad, real_t, -(x / y) / y)
WARPCC_2(rdiv_grad, real_t, -(y / x) / x)
WARPCC_2(mod_grad, real_t, (is_float<mixed_type<A, B>> ? 1 : 0))
WARPCC_2(mod_rgrad, real_t, (is_float<mixed_type<A, B>> ? -in::floor_divide(x, y) : (W)0))
WARPCC_2(rmod_grad, real_t, (is_float<mixed_type<A, B>> ? -in::floor_divide(y, x) : (W)0))
WARPCC_2(power_grad, real_t, y == 0 ? (W)0 : y * in::pow(x, y - 1))
WARPCC_2(power_rgrad, real_t, x == 0 && y >= 0 ? (W)0 : in::pow(x, y) * in::log(x))
WARPCC_2(rpower_grad, real_t, x * in::log(y))
WARPCC_2(hypot_grad_left, real_t, x / in::hypot(x, y))
WARPCC_2(hypot_grad_right, real_t, y / in::hypot(x, y))
WARPCC_2(copysign_grad, real_t, in::sign_bit(x) == in::sign_bit(y) ? 1 : -1)
WARPCC_2(arctan2_grad, real_t, y / in::hypot(x, y) / in::hypot(x, y))
WARPCC_2(arctan2_rgrad, real_t, -x / in::hypot(x, y) / in::hypot(x, y))
WARPCC_2(rarctan2_grad, real_t, x / in::hypot(x, y) / in::hypot(x, y))
WARPCC_2(ldexp_grad, real_t, in::ldexp((W)1, y))
WARPCC_2(ldexp_rgrad, real_t, in::ldexp(x, y) * (W)0.69314718055994530942)
WARPCC_2(rldexp_grad, real_t, in::ldexp(y, x) * (W)0.69314718055994530942)
WARPCC_2(smooth_l1_grad, real_t,
         in::fabs(x) > 1 / (y * y) ? in::sign(x) : x * y * y)
WARPCC_2(xelu_grad, real_t, x > 0 ? (W)1 : y)
WARPCC_2(prelu_grad, real_t, x > 0 ? (W)0 : x)
WARPCC_2(elu_grad, real_t, x > 0 ? (W)1 : x + y)
WARPCC_2(gamma_implicit_grad, real_t, special::gamma_sample_gradient(x, y))

}  // namespace op
}  // namespace warpcc
#endif
