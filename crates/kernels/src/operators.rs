//! Rust's operators on expressions: `a + b` is `call::add(a, b)`.

use std::ops;

use crate::call;
use crate::expression::Expr;

macro_rules! operators {
    ($($trait:ident $method:ident $function:ident;)*) => {
        $(
            impl<T: Into<Expr>> ops::$trait<T> for Expr {
                type Output = Expr;
                fn $method(self, other: T) -> Expr { call::$function(self, other) }
            }
            impl<T: Into<Expr>> ops::$trait<T> for &Expr {
                type Output = Expr;
                fn $method(self, other: T) -> Expr { call::$function(self, other) }
            }
            impl ops::$trait<Expr> for f64 {
                type Output = Expr;
                fn $method(self, other: Expr) -> Expr { call::$function(self, other) }
            }
        )*
    };
}

operators! {
    Add add add;
    Sub sub sub;
    Mul mul mul;
    Div div div;
    Rem rem mod_;
    BitAnd bitand bitwise_and;
    BitOr bitor bitwise_or;
    BitXor bitxor bitwise_xor;
    Shl shl left_shift;
    Shr shr right_shift;
}

impl ops::Neg for Expr {
    type Output = Self;
    fn neg(self) -> Self {
        call::negative(self)
    }
}

impl ops::Not for Expr {
    type Output = Self;
    fn not(self) -> Self {
        call::bitwise_not(self)
    }
}
