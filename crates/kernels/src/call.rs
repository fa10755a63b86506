//! The functions by name, to write expressions with.

use crate::expression::Expr;
use crate::functions::{DeviceFunction, Gives, with_functions};

macro_rules! calls {
    (@parameters 1, $f:expr, $name:ident, $doc:expr) => {
        #[doc = $doc]
        pub fn $name(x: impl Into<Expr>) -> Expr { Expr::apply($f, vec![x.into()]) }
    };
    (@parameters 2, $f:expr, $name:ident, $doc:expr) => {
        #[doc = $doc]
        pub fn $name(x: impl Into<Expr>, y: impl Into<Expr>) -> Expr {
            Expr::apply($f, vec![x.into(), y.into()])
        }
    };
    (@parameters 3, $f:expr, $name:ident, $doc:expr) => {
        #[doc = $doc]
        pub fn $name(x: impl Into<Expr>, y: impl Into<Expr>, z: impl Into<Expr>) -> Expr {
            Expr::apply($f, vec![x.into(), y.into(), z.into()])
        }
    };
    (@parameters 4, $f:expr, $name:ident, $doc:expr) => {
        #[doc = $doc]
        pub fn $name(
            x: impl Into<Expr>,
            y: impl Into<Expr>,
            z: impl Into<Expr>,
            w: impl Into<Expr>,
        ) -> Expr {
            Expr::apply($f, vec![x.into(), y.into(), z.into(), w.into()])
        }
    };
    ($($name:ident $text:literal $arity:tt $gives:ident $formula:literal;)*) => {
        $(calls!(@parameters $arity,
            { static F: DeviceFunction = DeviceFunction { name: $text, arity: $arity, gives: Gives::$gives, formula: $formula }; &F },
            $name, concat!("`", $text, "`: ", $formula));)*
    };
}

with_functions!(calls);
