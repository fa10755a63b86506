//! An expression of functions over named values: written in Rust with operators, or as text.
//!
//! `relu(a * x + b)` is `call::relu(a * x + b)` with `Expr::name("a")` and so on. The meaning of the names,
//! arrays or numbers, is given when the expression is planned.

use std::fmt;
use std::sync::Arc;

use crate::functions::DeviceFunction;

/// An expression. Cloning one shares it.
#[derive(Clone, Debug)]
pub struct Expr(pub(crate) Arc<Node>);

/// A number in an expression, or one given for a name. It takes on the type of what it
/// is used with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole number: of integers it makes integers.
    Int(i64),
    /// Any other: of integers it makes float or double.
    Float(f64),
}

#[derive(Debug)]
pub(crate) enum Node {
    Name(String),
    Number(Number),
    Call(&'static DeviceFunction, Vec<Expr>),
}

/// Drops the nodes one by one: a long sum is a deep tree, and recursion would overflow the stack.
impl Drop for Node {
    fn drop(&mut self) {
        let Self::Call(_, arguments) = self else {
            return;
        };
        let mut left = std::mem::take(arguments);
        while let Some(Expr(node)) = left.pop() {
            if let Some(mut inner) = Arc::into_inner(node)
                && let Self::Call(_, more) = &mut inner
            {
                left.append(more);
            }
        }
    }
}

impl Expr {
    /// The value that is later given under this name.
    #[must_use]
    pub fn name(name: &str) -> Self {
        Self(Arc::new(Node::Name(name.to_owned())))
    }

    /// A function of expressions, by its name. [`crate::parse::function`] also takes the names of [`crate::names`].
    ///
    /// # Errors
    ///
    /// No such function, or another number of arguments than it takes.
    pub fn call(name: &str, arguments: Vec<Self>) -> Result<Self, CallError> {
        let function = crate::functions::find(name);
        if let Some(function) = function.filter(|each| each.arity == arguments.len()) {
            return Ok(Self::apply(function, arguments));
        }
        Err(match function {
            Some(function) => CallError::Arity {
                name: name.to_owned(),
                expected: function.arity,
                given: arguments.len(),
            },
            None => CallError::unknown_function(name),
        })
    }

    pub(crate) fn apply(function: &'static DeviceFunction, arguments: Vec<Self>) -> Self {
        Self(Arc::new(Node::Call(function, arguments)))
    }

    /// The names in it, each once, in the order in which they first occur.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        let mut seen = std::collections::HashSet::new();
        let mut left = vec![self];
        while let Some(Self(node)) = left.pop() {
            // Each shared node is visited once, because an expression with many shared nodes is small.
            if !seen.insert(Arc::as_ptr(node)) {
                continue;
            }
            match &**node {
                Node::Name(name) if !names.contains(&name.as_str()) => names.push(name.as_str()),
                Node::Call(_, arguments) => left.extend(arguments.iter().rev()),
                _ => {}
            }
        }
        names
    }
}

/// A call that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No function has the name.
    #[error("there is no function {name:?}{}", near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default())]
    Unknown {
        /// The name.
        name: String,
        /// One that is almost it.
        near: Option<&'static str>,
    },
    /// It takes another number of arguments.
    #[error("{name} takes {expected} argument(s), but {given} were given")]
    Arity {
        /// The function.
        name: String,
        /// The number of arguments that it takes.
        expected: usize,
        /// The number of arguments that were given.
        given: usize,
    },
}

impl CallError {
    pub(crate) fn unknown_function(name: &str) -> Self {
        let functions = crate::functions::ALL.iter().map(|each| each.name);
        let near = functions
            .chain(crate::names::ALL.iter().map(|each| each.name))
            .map(|known| (strsim::damerau_levenshtein(known, name), known))
            .min()
            .filter(|(distance, _)| *distance <= 2 && *distance < name.len())
            .map(|(_, near)| near);
        Self::Unknown {
            name: name.chars().take(64).collect(),
            near,
        }
    }
}

impl From<f64> for Expr {
    fn from(value: f64) -> Self {
        Self(Arc::new(Node::Number(Number::Float(value))))
    }
}

impl From<i64> for Expr {
    fn from(value: i64) -> Self {
        Self(Arc::new(Node::Number(Number::Int(value))))
    }
}

impl From<i32> for Expr {
    fn from(value: i32) -> Self {
        i64::from(value).into()
    }
}

impl From<&Self> for Expr {
    fn from(value: &Self) -> Self {
        value.clone()
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
        }
    }
}

/// As text that parses to the same expression.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Node::Name(name) => f.write_str(name),
            Node::Number(number) => write!(f, "{number}"),
            Node::Call(function, arguments) => {
                write!(f, "{}(", function.name)?;
                for (index, argument) in arguments.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{argument}")?;
                }
                f.write_str(")")
            }
        }
    }
}
