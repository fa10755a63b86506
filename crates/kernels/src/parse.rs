//! An expression from text such as `relu(a * x + b)`, with Python's operators and their precedence.
//!
//! From weak to strong: comparisons (one, not a chain), `|`, `^`, `&`, `<<` `>>`, `+` `-`, `*` `/` `//` `%`,
//! unary `-` `+` `~`, `**` (from the right). A number with a point or an exponent is not whole.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::expression::{CallError, Expr, Node, Number};
pub use crate::tokens::ParseError;
use crate::tokens::{SIGNS, Token, tokens, unexpected};
use crate::{call, names};

/// Longer and deeper texts are refused: nobody writes such a kernel by hand.
const LONGEST: usize = 100_000;
const DEEPEST: usize = 200;

/// Reads an expression.
///
/// # Errors
///
/// The text is not an expression; the error has the column, the text found and the text expected.
pub fn parse(text: &str) -> Result<Expr, ParseError> {
    if text.len() > LONGEST {
        return Err(ParseError::TooLarge);
    }
    let mut parser = Parser {
        text,
        tokens: tokens(text)?,
        next: 0,
        depth: 0,
        longest: 0,
    };
    let expr = parser.comparison()?;
    match parser.peek() {
        Token::End => Ok(expr),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

/// A function of expressions, by its name or one of [`crate::names`].
///
/// # Errors
///
/// No such function or name, or another number of arguments than it takes.
pub fn function(name: &str, arguments: Vec<Expr>) -> Result<Expr, CallError> {
    if let Some(meant) = expand(name, &arguments) {
        return Ok(meant);
    }
    let given = arguments.len();
    let known = crate::functions::find(name).is_some();
    match names::find(name).filter(|_| !known) {
        Some(entry) => Err(CallError::Arity {
            name: name.to_owned(),
            expected: entry.arguments.len(),
            given,
        }),
        None => Expr::call(name, arguments),
    }
}

/// The expression that a name stands for with these arguments; `None` if it stands for none with so many.
fn expand(name: &str, arguments: &[Expr]) -> Option<Expr> {
    /// Each read once. A test reads them all.
    static READ: LazyLock<HashMap<&'static str, Expr>> = LazyLock::new(|| {
        let read = names::ALL
            .iter()
            .filter_map(|each| Some((each.name, parse(each.stands_for).ok()?)));
        read.collect()
    });
    let is_function = crate::functions::find(name).map(|function| function.arity);
    if is_function == Some(arguments.len()) {
        return None;
    }
    let entry = names::find(name).filter(|entry| entry.takes(arguments.len()))?;
    // Functions in an entry take that many arguments, so this recursion ends.
    let pattern = READ.get(name)?;
    let mut values = HashMap::new();
    for (index, (argument, number)) in entry.arguments.iter().enumerate() {
        let value = match (arguments.get(index), number) {
            (Some(given), _) => given.clone(),
            (None, Some(number)) => parse(number).ok()?,
            (None, None) => return None,
        };
        values.insert(*argument, value);
    }
    Some(filled(pattern, &values))
}

/// An expression with values in place of its names. Entries have only a few levels, so recursion is safe.
fn filled(pattern: &Expr, values: &HashMap<&str, Expr>) -> Expr {
    match &*pattern.0 {
        Node::Name(name) => values.get(name.as_str()).unwrap_or(pattern).clone(),
        Node::Number(_) => pattern.clone(),
        Node::Call(function, arguments) => {
            let filled = arguments.iter().map(|each| filled(each, values));
            Expr::apply(function, filled.collect())
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, Token<'a>)>,
    next: usize,
    depth: usize,
    /// The number of operators in a row. They nest in the tree like parentheses in the text.
    longest: usize,
}

type Level<'a> = fn(&mut Parser<'a>) -> Result<Expr, ParseError>;
type Make = fn(Expr, Expr) -> Expr;

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens
            .get(self.next)
            .map_or(Token::End, |(_, token)| *token)
    }

    fn at(&self) -> usize {
        self.tokens
            .get(self.next)
            .map_or(self.text.len(), |(at, _)| *at)
    }

    fn unexpected(&self, expected: &'static str) -> ParseError {
        match self.peek() {
            Token::End => ParseError::Unexpected {
                column: self.text.chars().count() + 1,
                found: "the end".to_owned(),
                expected,
            },
            Token::Name(name) => unexpected(self.text, self.at(), name, expected),
            Token::Sign(sign) => unexpected(self.text, self.at(), sign, expected),
            Token::Number(number) => {
                unexpected(self.text, self.at(), &number.to_string(), expected)
            }
        }
    }

    fn take(&mut self, sign: &str) -> bool {
        let takes = self.peek() == Token::Sign(SIGNS.iter().find(|s| **s == sign).unwrap_or(&""));
        if takes {
            self.next += 1;
        }
        takes
    }

    fn need(&mut self, sign: &'static str, expected: &'static str) -> Result<(), ParseError> {
        if self.take(sign) {
            Ok(())
        } else {
            Err(self.unexpected(expected))
        }
    }

    fn deeper(&mut self) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(ParseError::TooLarge);
        }
        Ok(())
    }

    /// Operators of one strength, from the left.
    fn row(&mut self, under: Level<'a>, signs: &[(&str, Make)]) -> Result<Expr, ParseError> {
        let mut left = under(self)?;
        'more: loop {
            for (sign, make) in signs {
                if self.take(sign) {
                    self.longest += 1;
                    if self.longest > 10 * DEEPEST {
                        return Err(ParseError::TooLarge);
                    }
                    left = make(left, under(self)?);
                    continue 'more;
                }
            }
            return Ok(left);
        }
    }

    fn comparison(&mut self) -> Result<Expr, ParseError> {
        const SIGNS: [(&str, Make); 6] = [
            ("==", |x, y| call::equal(x, y)),
            ("!=", |x, y| call::not_equal(x, y)),
            ("<=", |x, y| call::less_equal(x, y)),
            (">=", |x, y| call::greater_equal(x, y)),
            ("<", |x, y| call::less(x, y)),
            (">", |x, y| call::greater(x, y)),
        ];
        self.deeper()?;
        let left = self.or()?;
        let found = SIGNS.iter().find(|(sign, _)| self.take(sign));
        let result = match found {
            Some((_, make)) => make(left, self.or()?),
            None => left,
        };
        if SIGNS
            .iter()
            .any(|(sign, _)| self.peek() == Token::Sign(sign))
        {
            return Err(self.unexpected("no second comparison (use parentheses or logical_and)"));
        }
        self.depth -= 1;
        Ok(result)
    }

    fn or(&mut self) -> Result<Expr, ParseError> {
        self.row(Self::xor, &[("|", |x, y| x | y)])
    }

    fn xor(&mut self) -> Result<Expr, ParseError> {
        self.row(Self::and, &[("^", |x, y| x ^ y)])
    }

    fn and(&mut self) -> Result<Expr, ParseError> {
        self.row(Self::shift, &[("&", |x, y| x & y)])
    }

    fn shift(&mut self) -> Result<Expr, ParseError> {
        self.row(Self::sum, &[("<<", |x, y| x << y), (">>", |x, y| x >> y)])
    }

    fn sum(&mut self) -> Result<Expr, ParseError> {
        self.row(Self::product, &[("+", |x, y| x + y), ("-", |x, y| x - y)])
    }

    fn product(&mut self) -> Result<Expr, ParseError> {
        self.row(
            Self::unary,
            &[
                ("*", |x, y| x * y),
                ("/", |x, y| x / y),
                ("//", |x, y| call::floor_divide(x, y)),
                ("%", |x, y| x % y),
            ],
        )
    }

    fn unary(&mut self) -> Result<Expr, ParseError> {
        self.deeper()?;
        let result = if self.take("-") {
            // A number with its sign is a number: -128 is an int8.
            match self.unary()? {
                Expr(node) => match &*node {
                    Node::Number(Number::Int(value)) => value.wrapping_neg().into(),
                    Node::Number(Number::Float(value)) => (-value).into(),
                    _ => -Expr(node),
                },
            }
        } else if self.take("+") {
            self.unary()?
        } else if self.take("~") {
            !self.unary()?
        } else {
            let base = self.primary()?;
            if self.take("**") {
                call::power(base, self.unary()?)
            } else {
                base
            }
        };
        self.depth -= 1;
        Ok(result)
    }

    fn primary(&mut self) -> Result<Expr, ParseError> {
        match self.peek() {
            Token::Number(number) => {
                self.next += 1;
                Ok(match number {
                    Number::Int(value) => value.into(),
                    Number::Float(value) => value.into(),
                })
            }
            Token::Name(name) => {
                let at = self.at();
                self.next += 1;
                if self.take("(") {
                    self.arguments(at, name)
                } else {
                    Ok(Expr::name(name))
                }
            }
            _ if self.take("(") => {
                let inner = self.comparison()?;
                self.need(")", "an operator or \")\"")?;
                Ok(inner)
            }
            _ => Err(self.unexpected("a number, a name or \"(\"")),
        }
    }

    fn arguments(&mut self, at: usize, name: &str) -> Result<Expr, ParseError> {
        let mut arguments = Vec::new();
        if !self.take(")") {
            loop {
                arguments.push(self.comparison()?);
                if self.take(")") {
                    break;
                }
                self.need(",", "an operator, \",\" or \")\"")?;
            }
        }
        function(name, arguments).map_err(|problem| ParseError::Call {
            column: self.text[..at].chars().count() + 1,
            problem,
        })
    }
}
