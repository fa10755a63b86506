//! The brackets of a text that are open.

use super::head::Head;
use super::reader::Piece;

/// A bracket that is open.
pub enum OpenBracket<'t> {
    Parentheses(Parentheses<'t>),
    Square,
    /// That of a template's parameters. No other is tracked. One that is a "less than" stays open to the declaration's end.
    Angle,
    Braces(Braces<'t>),
}

#[derive(Clone, Copy)]
pub struct Parentheses<'t> {
    /// The name before it: that of a function, where parameters are declared.
    pub before: Option<Piece<'t>>,
    /// The piece before that name, and before attributes there.
    pub outside: Piece<'t>,
    /// Whether it cannot hold parameters: it follows a keyword, such as `noexcept` or `for`.
    pub is_expression: bool,
    /// Whether it may hold the parameters of a function that is declared, and not those of a variable in a class.
    pub may_declare: bool,
    /// Whether a word was there that may be a type.
    pub has_type: bool,
    /// Whether a parameter has a default. Those after it have one too.
    pub has_default: bool,
    /// Whether `class`, `struct`, `union` or `enum` is in it.
    pub has_class: bool,
    /// See [`Head::has_template_closure`].
    pub has_template_closure: bool,
}

#[derive(Clone, Copy)]
pub struct Braces<'t> {
    pub scope: Scope,
    /// What was before it.
    pub head: Head<'t>,
    /// Whether it was outside of all other brackets of its declaration.
    pub is_at_head: bool,
    /// How often the file had changed before it.
    pub changes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// A namespace, or `extern "C"`.
    Outer,
    Class,
    Body,
    /// Braces inside of a body.
    Block,
    /// An initialiser, or anything that is not understood.
    Other,
}

impl Scope {
    /// Whether this is not a function's body.
    pub fn is_outside(self) -> bool {
        match self {
            Self::Outer | Self::Class | Self::Other => true,
            Self::Body | Self::Block => false,
        }
    }
}
