//! Reads a text once, with its brackets and scopes.

use std::collections::HashSet;

use super::Names;
use super::brackets::{Braces, OpenBracket, Parentheses, Scope};
use super::head::{
    Head, is_attribute, is_class_key, is_function_of_class, is_part_of_type, may_follow_type,
    takes_expression,
};
use super::reader::{NextPiece, Piece, Reader, TokenKind};
use crate::tokens::is_word;

/// How deep brackets may be: each place of a name looks through them.
const DEEPEST: usize = 1000;

/// A reading of a text.
pub struct Scan<'t> {
    pub text: &'t [u8],
    pub reader: Reader<'t>,
    pub names: Names<'t>,
    /// The files that contain a name.
    pub files: HashSet<&'t [u8]>,
    pub open: Vec<OpenBracket<'t>>,
    pub head: Head<'t>,
    pub last: Piece<'t>,
    /// The one before `last`.
    pub before_last: Piece<'t>,
    /// The last attribute or specifier that may follow a type.
    passed: Passed<'t>,
    /// After the last `throw`.
    pub thrown: Option<Reader<'t>>,
    /// The files of the current statement so far.
    pub statement: Vec<&'t [u8]>,
    /// Where a name is in the current statement: the number of open brackets there.
    pub asked_at: Option<usize>,
    /// The file of the last piece.
    pub path: &'t [u8],
    /// How often the file has changed.
    pub changes: usize,
    /// Where the name of a class is expected: the number of open brackets there.
    pub class_at: Option<usize>,
    /// Where the outermost declaration begins that is no namespace or class and is not at its end.
    pub declaration_at: usize,
    /// How many bytes of declarations were read again.
    pub read_again: usize,
    /// Where the last attempt to skip braces ended in vain.
    pub not_skipped: usize,
}

/// An attribute or a specifier, which says nothing about the type that is before it.
struct Passed<'t> {
    /// Where its last piece is.
    at: usize,
    /// The piece before it, and before others of this kind there.
    before: Piece<'t>,
}

impl<'t> Scan<'t> {
    pub fn new(text: &'t [u8], names: Names<'t>) -> Self {
        Self {
            text,
            reader: Reader::new(text),
            names,
            files: HashSet::new(),
            open: Vec::new(),
            head: Head::default(),
            last: Piece::NONE,
            before_last: Piece::NONE,
            passed: Passed {
                at: usize::MAX,
                before: Piece::NONE,
            },
            thrown: None,
            statement: Vec::new(),
            asked_at: None,
            path: b"",
            changes: 0,
            class_at: None,
            declaration_at: 0,
            read_again: 0,
            not_skipped: 0,
        }
    }

    /// Reads the text to its end. `None` if it is not understood.
    pub fn run(&mut self) -> Option<()> {
        loop {
            match self.reader.next().ok()? {
                NextPiece::End => return self.open.is_empty().then_some(()),
                NextPiece::Directive(line) => self.is_harmless(line).then_some(())?,
                NextPiece::Piece(piece) => {
                    self.enter_file();
                    self.class_name(piece);
                    if self.is_at_head() {
                        self.head.take(piece, self.last, self.before_last);
                    }
                    match piece.kind {
                        TokenKind::Word => self.word(piece)?,
                        TokenKind::Sign => self.sign(piece.text)?,
                        TokenKind::Literal => {}
                    }
                    self.before_last = std::mem::replace(&mut self.last, piece);
                    if piece.text == b"{" {
                        self.skip_braces();
                    }
                }
            }
        }
    }

    /// A pragma may contain expressions.
    pub fn is_harmless(&self, directive: &[u8]) -> bool {
        let mut words = directive.split(|byte| !is_word(*byte));
        words.all(|word| self.names.find(word).is_none())
    }

    /// A compiler may use the line of any piece of a statement. So its files count if a name is in it.
    fn enter_file(&mut self) {
        let path = self.reader.path;
        if !self.statement.is_empty() {
            // Most pieces follow the same marker.
            if std::ptr::eq(self.path, path) || self.path == path {
                self.path = path;
                return;
            }
            if self.asked_at.is_some() {
                self.files.insert(path);
            }
        }
        self.changes += usize::from(self.path != path);
        self.path = path;
        self.statement.push(path);
    }

    /// Notes the names of classes: a function of that name is a constructor.
    fn class_name(&mut self, piece: Piece<'t>) {
        if piece.kind == TokenKind::Word && is_class_key(piece.text) {
            if !matches!(self.open.last(), Some(OpenBracket::Angle)) {
                self.class_at = Some(self.open.len());
            }
            return;
        }
        if self.class_at != Some(self.open.len()) {
            return;
        }
        match piece.kind {
            TokenKind::Word if takes_expression(piece.text) => {}
            TokenKind::Word => {
                self.names.classes.push(piece.text);
                self.class_at = None;
            }
            TokenKind::Sign if matches!(piece.text, b"(" | b"[" | b"::") => {}
            _ => self.class_at = None,
        }
    }

    fn word(&mut self, piece: Piece<'t>) -> Option<()> {
        let word = piece.text;
        if let Some(OpenBracket::Parentheses(round)) = self.open.last_mut() {
            round.has_class |= is_class_key(word);
            round.has_type |= !is_attribute(word);
        }
        match word {
            b"throw" => self.thrown = Some(self.reader),
            _ if may_follow_type(word) => {
                self.passed = Passed {
                    at: piece.at,
                    before: self.unqualified(self.last),
                };
            }
            _ => {}
        }
        match self.names.find(word) {
            Some(sort) => self.name(piece, sort),
            None => Some(()),
        }
    }

    fn sign(&mut self, sign: &[u8]) -> Option<()> {
        let operator = self.follows(b"operator") || self.before_last.is(b"operator");
        self.open_round(sign);
        match sign {
            b"(" => {
                let round = self.round();
                self.push(OpenBracket::Parentheses(round))?;
            }
            b"[" => self.push(OpenBracket::Square)?,
            b"<" => {
                let is_angle = matches!(self.open.last(), Some(OpenBracket::Angle));
                if is_angle && !operator || self.follows(b"template") {
                    self.push(OpenBracket::Angle)?;
                }
            }
            b">" if matches!(self.open.last(), Some(OpenBracket::Angle)) && !operator => {
                self.open.pop();
            }
            b")" => self.close_round()?,
            b"]" => return matches!(self.open.pop()?, OpenBracket::Square).then_some(()),
            b"{" => self.open_curly()?,
            b"}" => return self.close_curly(),
            b";" => self.end_declaration(),
            _ => {}
        }
        Some(())
    }

    /// A sign inside of round brackets.
    fn open_round(&mut self, sign: &[u8]) {
        let last = self.last;
        let Some(OpenBracket::Parentheses(round)) = self.open.last_mut() else {
            return;
        };
        match sign {
            b"=" => round.has_default = true,
            b"<" => round.has_template_closure |= last.is(b"]"),
            // `(*a)` and `(&a)` are no parameters, nor is `(T::*a)`.
            b"*" | b"&" => round.may_declare &= round.has_type && !last.is(b"::"),
            b"(" => round.may_declare &= round.has_type || is_attribute(last.text),
            _ => {}
        }
    }

    /// This piece, or what is before the attributes that end with it: `void __attribute__((host)) f()` and `T const f()`
    /// declare functions, as `void f()` does.
    fn unqualified(&self, piece: Piece<'t>) -> Piece<'t> {
        match piece.at == self.passed.at {
            true => self.passed.before,
            false => piece,
        }
    }

    fn round(&self) -> Parentheses<'t> {
        let before = (self.last.kind == TokenKind::Word).then_some(self.last);
        let is_operator = self.before_last.is(b"operator") || is_part_of_type(self.last.text);
        let outside = self.unqualified(self.before_last);
        let may_declare = match self.scope() {
            Some(Braces {
                scope: Scope::Class,
                head,
                ..
            }) => {
                let class = head.class.map_or(&b""[..], |class| class.name);
                before.is_some_and(|name| is_function_of_class(name.text, outside, class))
            }
            // `f<int>()` is a specialisation.
            _ => before.is_some() || self.last.is(b">"),
        };
        Parentheses {
            before: before.filter(|_| !is_operator),
            outside,
            is_expression: match before {
                Some(word) => takes_expression(word.text),
                // No parameters follow these.
                None => matches!(
                    self.last.text,
                    b"(" | b"," | b";" | b"{" | b"!" | b"=" | b"==" | b"!="
                ),
            },
            may_declare,
            has_type: false,
            has_default: false,
            has_class: false,
            has_template_closure: false,
        }
    }

    fn push(&mut self, open: OpenBracket<'t>) -> Option<()> {
        self.open.push(open);
        (self.open.len() <= DEEPEST).then_some(())
    }

    fn close_round(&mut self) -> Option<()> {
        let OpenBracket::Parentheses(round) = self.open.pop()? else {
            return None;
        };
        if round.before.is_some_and(|word| is_attribute(word.text)) {
            self.passed = Passed {
                at: self.reader.at - 1,
                before: round.outside,
            };
        }
        if self.is_at_head() && !round.is_expression {
            self.head.close_round(round.may_declare);
        }
        Some(())
    }

    fn end_declaration(&mut self) {
        self.close_angles();
        if self.is_at_head() {
            self.head = Head::default();
        }
        self.end_statement();
    }

    fn close_angles(&mut self) {
        while matches!(self.open.last(), Some(OpenBracket::Angle)) {
            self.open.pop();
        }
    }

    fn end_statement(&mut self) {
        if self.asked_at.is_none_or(|depth| self.open.len() <= depth) {
            self.asked_at = None;
        }
        self.statement.clear();
        self.begin_declaration();
    }

    fn close_curly(&mut self) -> Option<()> {
        self.close_angles();
        let OpenBracket::Braces(curly) = self.open.pop()? else {
            return None;
        };
        let Braces { scope, head, .. } = curly;
        if scope == Scope::Class {
            self.close_class(&curly)?;
        }
        // An initialiser does not end its declaration.
        let is_end = match scope {
            Scope::Other => false,
            Scope::Block => curly.is_at_head && !head.has_equals,
            Scope::Outer | Scope::Class | Scope::Body => true,
        };
        self.head = if is_end { Head::default() } else { head };
        self.head.follows_class |= scope == Scope::Class;
        self.end_statement();
        Some(())
    }

    /// Whether the last piece is this.
    pub fn follows(&self, text: &[u8]) -> bool {
        self.last.is(text)
    }

    fn open_curly(&mut self) -> Option<()> {
        if self.asked_at.is_some_and(|depth| self.open.len() < depth) {
            self.asked_at = None;
        }
        let curly = Braces {
            scope: self.scope_of_curly(),
            is_at_head: self.is_at_head(),
            head: std::mem::take(&mut self.head),
            changes: self.changes,
        };
        self.push(OpenBracket::Braces(curly))
    }

    fn scope_of_curly(&self) -> Scope {
        let Head { class, angles, .. } = self.head;
        if self.head.follows_class || self.head.has_template_closure {
            return Scope::Other;
        }
        if let Some(class) = class
            && self.is_at_head()
        {
            let is_class = class.may_open() && angles == 0 && !self.head.has_equals;
            return if is_class { Scope::Class } else { Scope::Other };
        }
        let scope = self.scope().map_or(Scope::Outer, |curly| curly.scope);
        if !scope.is_outside() {
            // Those of a default run where the function is called, those of a class where it is made.
            let is_understood = self.brackets().all(|open| match open {
                OpenBracket::Parentheses(round) => {
                    (!round.has_default || round.is_expression)
                        && !round.has_class
                        && !round.has_template_closure
                }
                OpenBracket::Square => true,
                OpenBracket::Angle | OpenBracket::Braces(_) => false,
            });
            return if is_understood {
                Scope::Block
            } else {
                Scope::Other
            };
        }
        let is_linkage = self.before_last.is(b"extern") && self.last.text.starts_with(b"\"");
        if self.is_at_head() && (self.head.is_namespace || is_linkage) {
            return Scope::Outer;
        }
        match self.is_at_head() && scope != Scope::Other && self.head.is_body(self.last) {
            true => Scope::Body,
            false => Scope::Other,
        }
    }
}
