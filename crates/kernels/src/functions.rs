//! The functions' table: each one's name, how many values it takes, what it gives, and its formula.
//!
//! The device text defines the same names in `warpcc::op` (`cuda/functions.cuh`, `cuda/gradients.cuh`).

use crate::dtype::{DType, Family};

/// The type in which a function computes, and so the type of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// The arguments' mixed type, bool as int32; integers wrap.
    Number,
    /// The arguments' mixed type.
    Same,
    /// Float or double.
    Real,
    /// True or false.
    Truth,
    /// The first argument's type.
    First,
    /// The second argument's type.
    Second,
    /// As `Same`; integers and bool only.
    Bits,
    /// As `Number`; integers and bool only.
    Whole,
    /// The second and third argument's mixed type.
    Chosen,
    /// Float or double by the first two arguments.
    RealOfTwo,
}

/// A function.
#[derive(Debug, PartialEq, Eq)]
pub struct DeviceFunction {
    /// Its name, in texts and in `warpcc::op`.
    pub name: &'static str,
    /// The number of its arguments.
    pub arity: usize,
    /// The type of its result.
    pub gives: Gives,
    /// Its formula, with notes on NaN and other special values.
    pub formula: &'static str,
}

impl DeviceFunction {
    /// Whether it takes so many instructions that they limit the speed for 16-bit elements on an H200. Then two
    /// accesses per thread hide more of the latency. `docs/bench/rtc-h200.json` has the times.
    #[must_use]
    pub(crate) fn is_heavy(&self) -> bool {
        const LIGHT: [&str; 19] = [
            "degrees",
            "div",
            "elu",
            "exp",
            "exp2",
            "gelu_tanh",
            "hard_sigmoid",
            "lerp",
            "log",
            "log2",
            "prelu",
            "radians",
            "rdiv",
            "reciprocal",
            "rsqrt",
            "sigmoid",
            "silu",
            "sqrt",
            "xelu",
        ];
        self.gives == Gives::Real && !LIGHT.contains(&self.name)
    }

    /// The compute type of its value for arguments of these types. `None`: it does not take them.
    #[must_use]
    pub fn value_of(&self, arguments: &[DType]) -> Option<DType> {
        let mixed = |of: &[DType]| of.iter().copied().reduce(DType::mixed);
        let all = mixed(arguments)?;
        Some(match self.gives {
            Gives::Number => all.number(),
            Gives::Same => all.compute(),
            Gives::Real => all.real(),
            Gives::Truth => DType::Bool,
            Gives::First => arguments.first()?.compute(),
            Gives::Second => arguments.get(1)?.compute(),
            Gives::Bits | Gives::Whole
                if arguments.iter().any(|each| each.family() == Family::Float) =>
            {
                return None;
            }
            Gives::Bits => all,
            Gives::Whole => all.number(),
            Gives::Chosen => mixed(arguments.get(1..)?)?.compute(),
            Gives::RealOfTwo => mixed(arguments.get(..2)?)?.real(),
        })
    }
}

/// The function of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static DeviceFunction> {
    ALL.iter().find(|each| each.name == name)
}

macro_rules! table {
    ($($name:ident $text:literal $arity:tt $gives:ident $formula:literal;)*) => {
        /// Every function, in the order of the documentation.
        pub static ALL: &[DeviceFunction] = &[
            $(DeviceFunction { name: $text, arity: $arity, gives: Gives::$gives, formula: $formula },)*
        ];
    };
}

/// Gives `$macro` a row for each function: in Rust, in texts, how many values, what it gives, its formula.
macro_rules! with_functions {
    ($macro:ident) => {
        $macro! {
    identity "identity" 1 Same "x";
    negative "negative" 1 Number "-x";
    abs "abs" 1 Number "|x|; the smallest integer stays as it is";
    sign "sign" 1 Number "-1, 0 or 1; NaN of NaN";
    square "square" 1 Number "x * x";
    zero "zero" 1 Number "0";
    one "one" 1 Number "1";
    negone "negone" 1 Number "-1";
    round_away "round_away" 1 Number "to the nearest whole number, halves away from zero";
    rint "rint" 1 Number "to the nearest whole number, halves to even";
    floor "floor" 1 Number "rounded down";
    ceil "ceil" 1 Number "rounded up";
    trunc "trunc" 1 Number "rounded towards zero";
    fix "fix" 1 Number "rounded towards zero";
    relu "relu" 1 Number "x where x > 0, else 0; NaN of NaN";
    reciprocal "reciprocal" 1 Real "1 / x";
    exp "exp" 1 Real "e^x";
    exp2 "exp2" 1 Real "2^x";
    expm1 "expm1" 1 Real "e^x - 1";
    log "log" 1 Real "ln x";
    log10 "log10" 1 Real "log10 x";
    log2 "log2" 1 Real "log2 x";
    log1p "log1p" 1 Real "ln(1 + x)";
    degrees "degrees" 1 Real "x * 180 / pi";
    radians "radians" 1 Real "x * pi / 180";
    sin "sin" 1 Real "sin x";
    cos "cos" 1 Real "cos x";
    tan "tan" 1 Real "tan x";
    arcsin "arcsin" 1 Real "arcsin x";
    arccos "arccos" 1 Real "arccos x";
    arctan "arctan" 1 Real "arctan x";
    sinh "sinh" 1 Real "sinh x";
    cosh "cosh" 1 Real "cosh x";
    tanh "tanh" 1 Real "tanh x";
    arcsinh "arcsinh" 1 Real "arsinh x";
    arccosh "arccosh" 1 Real "arcosh x";
    arctanh "arctanh" 1 Real "artanh x";
    sqrt "sqrt" 1 Real "sqrt x";
    rsqrt "rsqrt" 1 Real "1 / sqrt x";
    cbrt "cbrt" 1 Real "cube root of x";
    rcbrt "rcbrt" 1 Real "1 / cube root of x";
    erf "erf" 1 Real "erf x";
    erfc "erfc" 1 Real "1 - erf x";
    erfinv "erfinv" 1 Real "the y with erf y = x";
    gamma "gamma" 1 Real "gamma(x)";
    gammaln "gammaln" 1 Real "ln |gamma(x)|";
    digamma "digamma" 1 Real "d/dx ln gamma(x), in double; NaN at negative whole numbers, -inf at 0";
    trigamma "trigamma" 1 Real "d/dx digamma(x), in double; inf at whole numbers up to 0";
    sigmoid "sigmoid" 1 Real "1 / (1 + e^-x)";
    log_sigmoid "log_sigmoid" 1 Real "ln sigmoid(x), as min(x, 0) - log1p(e^-|x|)";
    softrelu "softrelu" 1 Real "ln(1 + e^x), as max(x, 0) + log1p(e^-|x|)";
    softsign "softsign" 1 Real "x / (1 + |x|); 1 and -1 at infinity";
    mish "mish" 1 Real "x tanh(softrelu(x)); 0 at -inf";
    silu "silu" 1 Real "x sigmoid(x); 0 at -inf";
    gelu "gelu" 1 Real "x erfc(-x / sqrt 2) / 2; 0 at -inf";
    gelu_tanh "gelu_tanh" 1 Real "x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2; 0 at -inf";
    selu "selu" 1 Real "1.0507... (x where x > 0, else 1.6732... (e^x - 1))";
    logical_not "logical_not" 1 Truth "x is 0; false of NaN";
    nonzero "nonzero" 1 Truth "x is not 0; true of NaN";
    isnan "isnan" 1 Truth "x is NaN";
    isinf "isinf" 1 Truth "x is infinite";
    isposinf "isposinf" 1 Truth "x is inf";
    isneginf "isneginf" 1 Truth "x is -inf";
    isfinite "isfinite" 1 Truth "x is neither infinite nor NaN";
    bitwise_not "bitwise_not" 1 Bits "bitwise complement; of bool: not x";

    add "add" 2 Number "x + y";
    sub "sub" 2 Number "x - y";
    rsub "rsub" 2 Number "y - x";
    mul "mul" 2 Number "x * y";
    div "div" 2 Real "x / y, of integers too";
    rdiv "rdiv" 2 Real "y / x";
    floor_divide "floor_divide" 2 Number "x / y rounded down, as Python does; integers by 0: 0";
    rfloor_divide "rfloor_divide" 2 Number "floor_divide(y, x)";
    mod_ "mod" 2 Number "what floor_divide leaves, of y's sign; by 0: integers 0, floating NaN";
    rmod "rmod" 2 Number "mod(y, x)";
    fmod "fmod" 2 Number "what division towards zero leaves, of x's sign; by 0: integers 0, floating NaN";
    rfmod "rfmod" 2 Number "fmod(y, x)";
    power "power" 2 Number "x^y; integers wrap, and with negative y give 1 / x^|y| towards zero, 0 of 0";
    rpower "rpower" 2 Number "y^x";
    max "max" 2 Same "the larger; NaN if either is NaN";
    min "min" 2 Same "the smaller; NaN if either is NaN";
    fmax "fmax" 2 Same "the larger; the other one if one is NaN";
    fmin "fmin" 2 Same "the smaller; the other one if one is NaN";
    hypot "hypot" 2 Real "sqrt(x^2 + y^2), without overflow on the way";
    arctan2 "arctan2" 2 Real "the angle of the point (y, x)";
    rarctan2 "rarctan2" 2 Real "arctan2(y, x)";
    copysign "copysign" 2 Number "|x| with y's sign, that of -0 too";
    rcopysign "rcopysign" 2 Number "copysign(y, x)";
    ldexp "ldexp" 2 Real "x 2^y";
    rldexp "rldexp" 2 Real "y 2^x";
    logaddexp "logaddexp" 2 Real "ln(e^x + e^y), without overflow on the way";
    smooth_l1 "smooth_l1" 2 Real "|x| - 0.5/y^2 where |x| > 1/y^2, else 0.5 x^2 y^2";
    xelu "xelu" 2 Real "x where x > 0, else x y";
    prelu "prelu" 2 Real "x where x > 0, else x y";
    elu "elu" 2 Real "x where x > 0, else y (e^x - 1)";
    equal "equal" 2 Truth "x = y; false with NaN";
    not_equal "not_equal" 2 Truth "x != y; true with NaN";
    greater "greater" 2 Truth "x > y; false with NaN";
    greater_equal "greater_equal" 2 Truth "x >= y; false with NaN";
    less "less" 2 Truth "x < y; false with NaN";
    less_equal "less_equal" 2 Truth "x <= y; false with NaN";
    logical_and "logical_and" 2 Truth "neither is 0; NaN is not 0";
    logical_or "logical_or" 2 Truth "one is not 0";
    logical_xor "logical_xor" 2 Truth "just one is not 0";
    left "left" 2 First "x";
    right "right" 2 Second "y";
    bitwise_and "bitwise_and" 2 Bits "bits in both";
    bitwise_or "bitwise_or" 2 Bits "bits in either";
    bitwise_xor "bitwise_xor" 2 Bits "bits in one";
    left_shift "left_shift" 2 Whole "x 2^y; 0 where y is negative or the type's bits and more";
    right_shift "right_shift" 2 Whole "x / 2^y rounded down; 0 or -1 where y is negative or the type's bits and more";
    gcd "gcd" 2 Whole "greatest common divisor, not negative";
    lcm "lcm" 2 Whole "least common multiple, not negative; 0 if either is 0";

    clip "clip" 3 Same "y where x < y, z where x > z, else x; NaN of NaN";
    fma "fma" 3 Number "x * y + z; of floating types rounded once";
    lerp "lerp" 3 Real "x + z (y - x)";
    hard_sigmoid "hard_sigmoid" 3 Real "x y + z held between 0 and 1";
    select "where" 3 Chosen "y where x is not 0, else z";

    backward_relu "backward_relu" 2 Real "g where x > 0, else 0; NaN of NaN";
    backward_sigmoid "backward_sigmoid" 2 Real "g out (1 - out)";
    backward_log_sigmoid "backward_log_sigmoid" 2 Real "g sigmoid(-x)";
    backward_softrelu "backward_softrelu" 2 Real "g sigmoid(x)";
    backward_softsign "backward_softsign" 2 Real "g / (1 + |x|)^2";
    backward_abs "backward_abs" 2 Real "g sign(x)";
    backward_exp "backward_exp" 2 Real "g e^x";
    backward_exp2 "backward_exp2" 2 Real "g 2^x ln 2";
    backward_expm1 "backward_expm1" 2 Real "g e^x";
    backward_log "backward_log" 2 Real "g / x";
    backward_log10 "backward_log10" 2 Real "g / (x ln 10)";
    backward_log2 "backward_log2" 2 Real "g / (x ln 2)";
    backward_log1p "backward_log1p" 2 Real "g / (1 + x)";
    backward_sin "backward_sin" 2 Real "g cos x";
    backward_cos "backward_cos" 2 Real "-g sin x";
    backward_tan "backward_tan" 2 Real "g (out^2 + 1)";
    backward_arcsin "backward_arcsin" 2 Real "g / sqrt((1 - x)(1 + x))";
    backward_arccos "backward_arccos" 2 Real "-g / sqrt((1 - x)(1 + x))";
    backward_arctan "backward_arctan" 2 Real "g / (1 + x^2)";
    backward_degrees "backward_degrees" 2 Real "g 180 / pi";
    backward_radians "backward_radians" 2 Real "g pi / 180";
    backward_sinh "backward_sinh" 2 Real "g cosh x";
    backward_cosh "backward_cosh" 2 Real "g sinh x";
    backward_tanh "backward_tanh" 2 Real "g (1 - out)(1 + out)";
    backward_arcsinh "backward_arcsinh" 2 Real "g / hypot(x, 1)";
    backward_arccosh "backward_arccosh" 2 Real "g / (sqrt(x - 1) sqrt(x + 1))";
    backward_arctanh "backward_arctanh" 2 Real "g / ((1 - x)(1 + x))";
    backward_sqrt "backward_sqrt" 2 Real "g / (2 out)";
    backward_rsqrt "backward_rsqrt" 2 Real "-g / (2 x sqrt x)";
    backward_cbrt "backward_cbrt" 2 Real "g / (3 out^2)";
    backward_rcbrt "backward_rcbrt" 2 Real "-g / (3 x cbrt x)";
    backward_square "backward_square" 2 Real "2 x g";
    backward_reciprocal "backward_reciprocal" 2 Real "-g / x^2";
    backward_erf "backward_erf" 2 Real "g 2 / sqrt(pi) e^(-x^2)";
    backward_erfinv "backward_erfinv" 2 Real "g sqrt(pi) / 2 e^(out^2)";
    backward_gamma "backward_gamma" 2 Real "g gamma(x) digamma(x)";
    backward_gammaln "backward_gammaln" 2 Real "g digamma(x)";
    backward_digamma "backward_digamma" 2 Real "g trigamma(x)";
    backward_mish "backward_mish" 2 Real "g (t + x sigmoid(x)(1 - t^2)), t = tanh(softrelu(x))";
    backward_silu "backward_silu" 2 Real "g (s + x s (1 - s)), s = sigmoid(x)";
    backward_gelu "backward_gelu" 2 Real "g (F(x) + x F'(x)), F the normal distribution";
    backward_gelu_tanh "backward_gelu_tanh" 2 Real "g times the slope of gelu_tanh at x";
    backward_selu "backward_selu" 2 Real "g 1.0507... (1 where x > 0, else 1.6732... e^x)";
    backward_clip "backward_clip" 4 RealOfTwo "0 where x < y or x > z, else g";

    div_grad "div_grad" 2 Real "1 / y";
    div_rgrad "div_rgrad" 2 Real "-x / y^2";
    rdiv_grad "rdiv_grad" 2 Real "-y / x^2";
    mod_grad "mod_grad" 2 Real "1; of integers 0";
    mod_rgrad "mod_rgrad" 2 Real "-floor(x / y); of integers 0";
    rmod_grad "rmod_grad" 2 Real "-floor(y / x); of integers 0";
    power_grad "power_grad" 2 Real "y x^(y - 1); 0 where y is 0";
    power_rgrad "power_rgrad" 2 Real "x^y ln x; 0 where x is 0 and y is not negative";
    rpower_grad "rpower_grad" 2 Real "out ln y, out = y^x given as x";
    hypot_grad_left "hypot_grad_left" 2 Real "x / hypot(x, y)";
    hypot_grad_right "hypot_grad_right" 2 Real "y / hypot(x, y)";
    copysign_grad "copysign_grad" 2 Real "1 where the signs agree, else -1";
    arctan2_grad "arctan2_grad" 2 Real "y / (x^2 + y^2)";
    arctan2_rgrad "arctan2_rgrad" 2 Real "-x / (x^2 + y^2)";
    rarctan2_grad "rarctan2_grad" 2 Real "x / (x^2 + y^2)";
    ldexp_grad "ldexp_grad" 2 Real "2^y";
    ldexp_rgrad "ldexp_rgrad" 2 Real "x 2^y ln 2";
    rldexp_grad "rldexp_grad" 2 Real "y 2^x ln 2";
    smooth_l1_grad "smooth_l1_grad" 2 Real "sign(x) where |x| > 1/y^2, else x y^2";
    xelu_grad "xelu_grad" 2 Real "1 where x > 0, else y";
    prelu_grad "prelu_grad" 2 Real "by y: 0 where x > 0, else x";
    elu_grad "elu_grad" 2 Real "of elu's value x: 1 where x > 0, else x + y";
    gamma_implicit_grad "gamma_implicit_grad" 2 Real "the derivative of a gamma-distributed sample y by its shape x, in double; relative error below 1e-8";
        }
    };
}
pub(crate) use with_functions;

with_functions!(table);
