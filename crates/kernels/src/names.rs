//! Names that people know from NumPy, the Python array API and PyTorch, beside those of the functions: each stands for an
//! expression.

/// A name, and the expression that it stands for.
#[derive(Debug, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub name: &'static str,
    /// Its arguments in order, each with the number that is taken where it is not given.
    pub arguments: &'static [(&'static str, Option<&'static str>)],
    /// What it stands for, in these arguments.
    pub stands_for: &'static str,
}

const X: &[(&str, Option<&str>)] = &[("x", None)];
const XY: &[(&str, Option<&str>)] = &[("x", None), ("y", None)];
const XYZ: &[(&str, Option<&str>)] = &[("x", None), ("y", None), ("z", None)];

macro_rules! names {
    ($($name:literal $arguments:expr => $stands_for:literal;)*) => {
        /// Every name, in the order of the documentation.
        pub static ALL: &[Name] = &[
            $(Name { name: $name, arguments: $arguments, stands_for: $stands_for },)*
        ];
    };
}

names! {
    "absolute" X => "abs(x)";
    "fabs" X => "abs(x * 1.0)";
    "positive" X => "identity(x)";
    "neg" X => "negative(x)";
    "round" X => "rint(x)";
    "around" X => "rint(x)";
    "frac" X => "x - trunc(x)";
    "acos" X => "arccos(x)";
    "acosh" X => "arccosh(x)";
    "asin" X => "arcsin(x)";
    "asinh" X => "arcsinh(x)";
    "atan" X => "arctan(x)";
    "atanh" X => "arctanh(x)";
    "atan2" XY => "arctan2(x, y)";
    "deg2rad" X => "radians(x)";
    "rad2deg" X => "degrees(x)";
    "sinc" X => "where(x == 0, 1.0, sin(3.141592653589793 * x) / (3.141592653589793 * x))";
    "lgamma" X => "gammaln(x)";
    "psi" X => "digamma(x)";
    "signbit" X => "copysign(1.0, x) < 0";
    "invert" X => "bitwise_not(x)";
    "bitwise_invert" X => "bitwise_not(x)";
    "bitwise_left_shift" XY => "left_shift(x, y)";
    "bitwise_right_shift" XY => "right_shift(x, y)";
    "subtract" XY => "sub(x, y)";
    "multiply" XY => "mul(x, y)";
    "divide" XY => "div(x, y)";
    "true_divide" XY => "div(x, y)";
    "remainder" XY => "mod(x, y)";
    "pow" XY => "power(x, y)";
    "maximum" XY => "max(x, y)";
    "minimum" XY => "min(x, y)";
    "eq" XY => "equal(x, y)";
    "ne" XY => "not_equal(x, y)";
    "gt" XY => "greater(x, y)";
    "ge" XY => "greater_equal(x, y)";
    "lt" XY => "less(x, y)";
    "le" XY => "less_equal(x, y)";
    "heaviside" XY => "where(x < 0, zero(x), where(x > 0, one(x), where(x == 0, y, x)))";
    "logaddexp2" XY =>
        "where(x == y, x + 1.0, max(x, y) + log1p(exp2(-abs(x - y))) * 1.4426950408889634)";
    "xlogy" XY => "where(isnan(y), y, where(x == 0, zero(x), x * log(y)))";
    "clamp" XYZ => "min(max(x, y), z)";
    "expit" X => "sigmoid(x)";
    "logit" X => "log(x / (1 - x))";
    "logsigmoid" X => "log_sigmoid(x)";
    "softplus" X => "softrelu(x)";
    "swish" X => "silu(x)";
    "tanhshrink" X => "x - tanh(x)";
    "relu6" X => "clip(x, 0, 6)";
    "hardsigmoid" X => "hard_sigmoid(x, 0.16666666666666666, 0.5)";
    "hardswish" X => "x * hard_sigmoid(x, 0.16666666666666666, 0.5)";
    "hardtanh" &[("x", None), ("min_val", Some("-1")), ("max_val", Some("1"))] =>
        "clip(x, min_val, max_val)";
    "leaky_relu" &[("x", None), ("negative_slope", Some("0.01"))] => "xelu(x, negative_slope)";
    "elu" &[("x", None), ("alpha", Some("1.0"))] => "elu(x, alpha)";
    "celu" &[("x", None), ("alpha", Some("1.0"))] => "max(x, 0) + min(alpha * expm1(x / alpha), 0)";
    "hardshrink" &[("x", None), ("lambd", Some("0.5"))] => "where(abs(x) <= lambd, zero(x), x)";
    "softshrink" &[("x", None), ("lambd", Some("0.5"))] =>
        "where(x > lambd, x - lambd, where(x < -lambd, x + lambd, x * 0))";
    "threshold" &[("x", None), ("threshold", None), ("value", None)] =>
        "where(x <= threshold, value, x)";
}

/// Names of reductions in other packages, each with ours.
pub static REDUCTIONS: &[(&str, &str)] = &[("amax", "max"), ("amin", "min")];

impl Name {
    /// The fewest arguments that it takes.
    #[must_use]
    pub fn fewest(&self) -> usize {
        let needed = |(_, number): &&(&str, Option<&str>)| number.is_none();
        self.arguments.iter().filter(needed).count()
    }

    pub(crate) fn takes(&self, count: usize) -> bool {
        (self.fewest()..=self.arguments.len()).contains(&count)
    }
}

/// The entry of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Name> {
    ALL.iter().find(|each| each.name == name)
}

/// Our name of a reduction.
#[must_use]
pub fn reduction(name: &str) -> &str {
    let found = REDUCTIONS.iter().find(|(theirs, _)| *theirs == name);
    found.map_or(name, |(_, ours)| ours)
}
