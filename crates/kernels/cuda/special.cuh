// Functions that neither NVRTC nor a host's mathematics library has: computed in double.
#ifndef WARPCC_SPECIAL_CUH
#define WARPCC_SPECIAL_CUH

namespace warpcc {
namespace special {

constexpr double pi = 3.14159265358979323846;

WARPCC_FN double quiet_nan() { return bit_copy<double>(0x7ff8000000000000ull); }
WARPCC_FN double infinity() { return bit_copy<double>(0x7ff0000000000000ull); }

/// The logarithmic derivative of gamma. At zero, infinity of the other sign; at the negative
/// integers, where both infinities are near, NaN.
WARPCC_FN double digamma(double x) {
  if (is_nan(x)) return x;
  if (x == 0) return copysign(infinity(), -x);
  if (is_inf(x)) return x > 0 ? x : quiet_nan();
  double reflected = 0;
  if (x < 0) {
    const double whole = rint(x), part = x - whole;
    if (part == 0) return quiet_nan();
    // psi(x) = psi(1 - x) - pi / tan(pi x); the tangent has period 1.
    reflected = -pi / tan(pi * part);
    x = 1 - x;
  }
  // Close to the only positive root, its Taylor series, so that few digits are lost there.
  const double root = 1.4616321449683622;            // psi(root) = -9.5e-17, which is added below
  const double near = (x - root) - 9.549995429965697e-17;
  if (near > -0.05 && near < 0.05) {
    const double series =
        near * (0.96767224544762117 +
        near * (-0.44276316898359211 +
        near * (0.25849976095565101 +
        near * (-0.16394270544240653 +
        near * (0.10782405069126237 +
        near * (-0.072199561256454711 +
        near * (0.048804288164143107 +
        near * (-0.033161126474847359 +
        near * (0.022597648232218105 +
        near * (-0.015424765904948959 +
        near * 0.010538791616612175))))))))));
    return series + reflected;
  }
  double below = 0;
  while (x < 10) {
    below -= 1 / x;
    x += 1;
  }
  const double i = 1 / x, s = i * i;
  // Bernoulli numbers over their index: 1/12, -1/120, 1/252, -1/240, 1/132, -691/32760, 1/12.
  const double tail =
      s * (0.08333333333333333 - s * (0.008333333333333333 - s * (0.003968253968253968 -
      s * (0.004166666666666667 - s * (0.007575757575757576 - s * (0.021092796092796094 -
      s * 0.08333333333333333))))));
  return log(x) - 0.5 * i - tail + below + reflected;
}

/// The derivative of digamma. Infinite at zero and the negative integers.
WARPCC_FN double trigamma(double x) {
  if (is_nan(x)) return x;
  if (is_inf(x)) return x > 0 ? 0.0 : quiet_nan();
  double sign = 1, reflected = 0;
  if (x <= 0) {
    const double part = x - rint(x);
    if (part == 0) return infinity();
    // psi1(x) = pi^2 / sin^2(pi x) - psi1(1 - x)
    const double sine = sin(pi * part);
    reflected = (pi / sine) * (pi / sine);
    sign = -1;
    x = 1 - x;
  }
  double sum = 0;
  while (x < 10) {
    sum += 1 / (x * x);
    x += 1;
  }
  const double i = 1 / x, s = i * i;
  // 1/x + 1/2x^2 + B2/x^3 + B4/x^5 ...
  const double tail =
      i * s * (0.16666666666666666 - s * (0.03333333333333333 - s * (0.023809523809523808 -
      s * (0.03333333333333333 - s * (0.07575757575757576 - s * (0.2531135531135531 -
      s * 1.1666666666666667))))));
  return reflected + sign * (sum + i + 0.5 * s + tail);
}

/// The derivative of a sample of the gamma distribution by its shape `a`, at the sample `x`:
/// -(dF/da) / (dF/dx) of the distribution's F, both positive. From the series of the lower
/// incomplete gamma function where it converges fast, else by differences of its continued
/// fraction's logarithm.
WARPCC_FN double gamma_upper(double a, double x) {
  // Lentz's continued fraction of Gamma(a, x) / (e^-x x^a).
  const double tiny = 1e-300;
  double b = x + 1 - a, c = 1 / tiny, d = 1 / (b == 0 ? tiny : b), h = d;
  for (int i = 1; i < 2000; ++i) {
    const double an = -i * (i - a);
    b += 2;
    d = an * d + b;
    if (d > -tiny && d < tiny) d = tiny;
    c = b + an / c;
    if (c > -tiny && c < tiny) c = tiny;
    d = 1 / d;
    const double step = d * c;
    h *= step;
    if (fabs(step - 1) < 1e-16) break;
  }
  return h;
}
WARPCC_FN double gamma_sample_gradient(double a, double x) {
  if (!(a > 0) || !(x >= 0) || is_inf(a) || is_inf(x)) return quiet_nan();
  if (x == 0) return 0;
  if (x < a + 1) {
    // F = x^a e^-x / Gamma(a) * sum t_n, t_n = x^n / (a (a+1) ... (a+n)). By a, t_n changes by
    // -t_n (1/a + h_n), h_n = 1/(a+1) + ... + 1/(a+n), and the logarithm of the factor by
    // ln x - digamma(a) = ln x - digamma(a+1) + 1/a: the 1/a cancel, and are left out.
    double term = 1 / a, h = 0, sum = term, weighted = 0;
    for (int n = 1; n < 100000; ++n) {
      term *= x / (a + n);
      h += 1 / (a + n);
      sum += term;
      weighted += term * h;
      if (term < sum * 1e-17) break;
    }
    // dF/dx = x^(a-1) e^-x / Gamma(a): the common factors go out, one x stays.
    return -x * ((log(x) - digamma(a + 1)) * sum - weighted);
  }
  // 1 - F = e^-x x^a h / Gamma(a): by a it is (1 - F) (ln x - digamma(a) + h'/h).
  const double step = 1e-5 * (a > 1 ? a : 1) < 0.5 * a ? 1e-5 * (a > 1 ? a : 1) : 1e-5 * a;
  const double h = gamma_upper(a, x);
  const double slope = (gamma_upper(a + step, x) - gamma_upper(a - step, x)) / (2 * step);
  return x * ((log(x) - digamma(a)) * h + slope);
}

}  // namespace special
}  // namespace warpcc
#endif
