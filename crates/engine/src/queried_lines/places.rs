//! Checks every place of a name that asks for a line.

use super::brackets::{Braces, OpenBracket, Parentheses, Scope};
use super::head::{is_attribute, takes_expression};
use super::reader::{NextPiece, Piece, TokenKind};
use super::scan::Scan;
use super::values::Value;
use super::{Sort, whole_words};

/// The longest qualifier between `throw` and the name of a class, in pieces.
const LONGEST_QUALIFIER: usize = 20;

impl<'t> Scan<'t> {
    /// Checks a place of a name that asks. `None` if it may be called from elsewhere without a name.
    pub fn name(&mut self, name: Piece<'t>, sort: Sort) -> Option<()> {
        let mut ahead = self.reader;
        let mut next = ahead.next().ok()?;
        if sort == Sort::Function {
            // `(name)()` is a call. Otherwise a function without arguments is only its address, which has no defaults.
            while matches!(&next, NextPiece::Piece(piece) if piece.is(b")")) {
                next = ahead.next().ok()?;
            }
            let may_be_called = match &next {
                NextPiece::Piece(piece) if !piece.is(b"(") => self.not_called(name, *piece)?,
                NextPiece::Piece(_) | NextPiece::Directive(_) | NextPiece::End => true,
            };
            if !may_be_called {
                return Some(());
            }
        }
        self.files.extend(self.statement.drain(..));
        self.statement.push(self.reader.path);
        let depth = self.asked_at.unwrap_or(usize::MAX);
        self.asked_at = Some(depth.min(self.open.len()));
        match sort {
            Sort::Builtin | Sort::Function => self.call(),
            Sort::Class => self.mention(name, &next),
        }
    }

    /// A function that is named, with `next` after it. Whether it may be called here; `None` if it may be elsewhere, without
    /// the name.
    fn not_called(&mut self, name: Piece, next: Piece) -> Option<bool> {
        let is_template = next.is(b"<");
        if is_template && self.is_called_with_arguments() {
            return Some(true);
        }
        // An attribute can say what is called, such as `cleanup`.
        if !is_template && self.is_in_attribute() {
            return None;
        }
        match self.value(name) {
            Value::Harmless => Some(is_template),
            Value::Called => Some(true),
            Value::Escapes if self.names.is_a_guess(name.text) => {
                self.names.has_guess_escaped = true;
                Some(is_template)
            }
            Value::Escapes => None,
        }
    }

    fn is_in_attribute(&self) -> bool {
        let mut inner = None;
        self.brackets().any(|open| {
            let outside = inner.replace(open);
            match open {
                OpenBracket::Parentheses(Parentheses { before, .. }) => {
                    before.is_some_and(|piece| is_attribute(piece.text))
                }
                OpenBracket::Square => matches!(outside, Some(OpenBracket::Square)),
                OpenBracket::Angle | OpenBracket::Braces(_) => false,
            }
        })
    }

    /// A place where a function may be called: harmless where its line is a line of this file. In a default argument it is
    /// one of the caller's, so the function there asks too.
    fn call(&mut self) -> Option<()> {
        let scope = self.scope().map_or(Scope::Outer, |curly| curly.scope);
        let mut asking = None;
        let mut outermost = None;
        for open in self.brackets() {
            match open {
                OpenBracket::Parentheses(round) => {
                    // A closure's template parameters can ask.
                    if asking.is_some() || round.has_template_closure {
                        return None;
                    }
                    if round.has_default && !round.is_expression {
                        // A closure's parameters have no name before them.
                        asking = Some(round.before?);
                    }
                }
                OpenBracket::Angle => return None,
                OpenBracket::Square | OpenBracket::Braces(_) => {}
            }
            outermost = Some(open);
        }
        let is_initialiser = self.head.has_equals && !self.head.is_using;
        // A member's initialiser runs where the class is made.
        if self.head.has_template_closure
            || scope == Scope::Other
            || scope == Scope::Class && is_initialiser
        {
            return None;
        }
        let Some(function) = asking else {
            return Some(());
        };
        let is_declared = matches!(outermost, Some(OpenBracket::Parentheses(_)))
            && scope.is_outside()
            && !self.head.has_equals
            && !self.head.is_typedef
            && self.head.angles == 0
            && !takes_expression(function.text);
        is_declared.then_some(())?;
        self.add(function)
    }

    /// Adds the function or the constructor of that name. `None` if it can be called without its name.
    fn add(&mut self, function: Piece<'t>) -> Option<()> {
        let own = self.scope().filter(|curly| curly.scope == Scope::Class);
        let own = own.and_then(|curly| curly.head.class);
        let own = own.filter(|class| class.name == function.text);
        if own.is_some_and(|class| !class.is_first) {
            return None;
        }
        let is_new = self.names.add(function.text)?;
        if is_new {
            let known = [function.at, own.map_or(function.at, |class| class.at)];
            let before = &self.text[..self.reader.at];
            let mut places = whole_words(before, function.text);
            self.names.are_incomplete |=
                places.any(|at| !known.contains(&at) && !super::is_in_marker(before, at));
        }
        Some(())
    }

    /// A class ends. One with a constructor that asks must be in one file, because its members can call that without its name.
    pub fn close_class(&self, class: &Braces) -> Option<()> {
        let name = class.head.class?.name;
        let asks = self.names.find(name) == Some(Sort::Class);
        if !asks {
            return Some(());
        }
        let mut ahead = self.reader;
        let is_end = matches!(ahead.next(), Ok(NextPiece::Piece(piece)) if piece.is(b";"));
        (is_end && class.changes == self.changes).then_some(())
    }

    /// A place of a class with a constructor that asks. If code can use the class without this name, it can call that.
    fn mention(&mut self, name: Piece, next: &NextPiece) -> Option<()> {
        let is_next = |text: &[u8]| matches!(next, NextPiece::Piece(piece) if piece.is(text));
        let curly = self.scope();
        let is_own = curly.is_some_and(|curly| {
            let class = curly.head.class.filter(|_| curly.scope == Scope::Class);
            class.is_some_and(|class| class.name == name.text)
        });
        let is_harmless = match curly.map_or(Scope::Outer, |curly| curly.scope) {
            // `throw name(...)`: what is caught has this name again.
            Scope::Body | Scope::Block => {
                self.is_thrown(name) && is_next(b"(") && self.call().is_some()
            }
            Scope::Class if is_own => {
                let constructor = self.is_at_head() && is_next(b"(") && !self.head.has_equals;
                constructor || self.is_parameter() && is_next(b"&")
            }
            Scope::Outer => self.is_at_head() && self.head.is_using && !self.head.has_equals,
            Scope::Class | Scope::Other => false,
        };
        (is_harmless || self.is_declared(name, next)).then_some(())
    }

    /// Whether the name is that of a class that is declared here, and of nothing else.
    fn is_declared(&self, name: Piece, next: &NextPiece) -> bool {
        let Some(class) = self.head.class.filter(|_| self.is_at_head()) else {
            return false;
        };
        let ends = |piece: &Piece| {
            let ends: [&[u8]; 4] = [b";", b":", b"{", b"final"];
            ends.iter().any(|end| piece.is(end))
        };
        class.at == name.at
            && class.is_first
            && class.may_open()
            && matches!(next, NextPiece::Piece(piece) if ends(piece))
    }

    /// Whether `throw` and at most a qualifier are before the name.
    fn is_thrown(&self, name: Piece) -> bool {
        let Some(mut reader) = self.thrown else {
            return false;
        };
        for _ in 0..LONGEST_QUALIFIER {
            let Ok(NextPiece::Piece(piece)) = reader.next() else {
                return false;
            };
            if piece.at == name.at {
                return true;
            }
            if piece.kind != TokenKind::Word && !piece.is(b"::") {
                return false;
            }
        }
        false
    }

    /// Whether this place is among parameters, and not in a default.
    fn is_parameter(&self) -> bool {
        let is_parameters = |open: &OpenBracket| matches!(open, OpenBracket::Parentheses(round) if !round.has_default);
        self.brackets().all(is_parameters) && !self.is_at_head()
    }
}

impl<'t> Scan<'t> {
    /// Whether no bracket of the current declaration is open.
    pub fn is_at_head(&self) -> bool {
        matches!(self.open.last(), None | Some(OpenBracket::Braces(_)))
    }

    /// The brackets inside of the innermost braces, from the inside.
    pub fn brackets(&self) -> impl Iterator<Item = &OpenBracket<'t>> {
        let inner = self.open.iter().rev();
        inner.take_while(|open| !matches!(open, OpenBracket::Braces(_)))
    }

    /// The innermost braces.
    pub fn scope(&self) -> Option<&Braces<'t>> {
        self.open.iter().rev().find_map(|open| match open {
            OpenBracket::Braces(curly) => Some(curly),
            _ => None,
        })
    }
}
