//! Reads a text once, with its brackets and scopes, and checks every place of a name that asks for a line.

use super::reader::{Found, Kind, Piece, Reader};
use super::{Names, Sort, whole_words};

/// A bracket that is open.
enum Open<'t> {
    Round {
        /// The name before it: that of a function, where parameters are declared.
        before: Option<Piece<'t>>,
        /// Whether it cannot hold parameters: it follows a keyword, such as `noexcept` or `for`.
        is_expression: bool,
        /// Whether the current parameter has a default.
        has_default: bool,
    },
    Square,
    /// That of a template's parameters. No other is tracked. One that is a "less than" stays open to the declaration's end.
    Angle,
    Curly {
        scope: Scope,
        /// What was before it.
        head: Head<'t>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scope {
    /// A namespace, or `extern "C"`.
    Outer,
    Class,
    Body,
    /// Braces inside of a body.
    Block,
    /// An initialiser, or anything that is not understood.
    Other,
}

/// What a declaration has had so far, outside of its brackets.
#[derive(Clone, Copy, Default)]
struct Head<'t> {
    /// The text from the keyword `class`, `struct`, `union` or `enum` on.
    class: Option<&'t [u8]>,
    is_using: bool,
    is_namespace: bool,
    has_colon: bool,
    has_equals: bool,
    /// Whether the last brackets, but those of keywords, follow a name: then they hold a function's parameters. Those of a
    /// pointer to a function follow `)`.
    has_parameters: bool,
    /// Whether a constructor's list of initialisers follows its parameters.
    has_initialisers: bool,
    /// Whether the type of a result follows the parameters.
    has_result: bool,
}

/// A reading of a text.
pub struct Scan<'t> {
    text: &'t [u8],
    reader: Reader<'t>,
    pub names: Names<'t>,
    /// The files that contain a name.
    pub files: Vec<&'t [u8]>,
    open: Vec<Open<'t>>,
    head: Head<'t>,
    last: Piece<'t>,
    /// The one before `last`.
    before_last: Piece<'t>,
    /// After the last `throw`.
    thrown: Option<Reader<'t>>,
}

impl<'t> Scan<'t> {
    pub fn new(text: &'t [u8], names: Names<'t>) -> Self {
        Self {
            text,
            reader: Reader::new(text),
            names,
            files: Vec::new(),
            open: Vec::new(),
            head: Head::default(),
            last: Piece::NONE,
            before_last: Piece::NONE,
            thrown: None,
        }
    }

    /// Reads the text to its end. `None` if it is not understood.
    pub fn run(&mut self) -> Option<()> {
        loop {
            match self.reader.next().ok()? {
                Found::End => return self.open.is_empty().then_some(()),
                Found::Directive(line) => self.directive(line)?,
                Found::Piece(piece) => {
                    match piece.kind {
                        Kind::Word => self.word(piece)?,
                        Kind::Sign => self.sign(piece.text)?,
                        Kind::Literal => {}
                    }
                    self.before_last = std::mem::replace(&mut self.last, piece);
                }
            }
        }
    }

    /// A pragma may contain expressions.
    fn directive(&mut self, line: &[u8]) -> Option<()> {
        let mut names = self.names.all.iter();
        let contains = |name: &[u8]| whole_words(line, name).next().is_some();
        (!names.any(|(name, _)| contains(name))).then_some(())
    }

    fn word(&mut self, piece: Piece<'t>) -> Option<()> {
        let word = piece.text;
        match word {
            b"class" | b"struct" | b"union" | b"enum" if self.is_at_head() => {
                self.head.class.get_or_insert(&self.text[piece.at..]);
            }
            b"namespace" if self.is_at_head() => self.head.is_namespace = true,
            b"using" if self.is_at_head() => self.head.is_using = true,
            b"throw" => self.thrown = Some(self.reader),
            _ => {}
        }
        match self.names.find(word) {
            Some(sort) => self.name(piece, sort),
            None => Some(()),
        }
    }

    fn sign(&mut self, sign: &[u8]) -> Option<()> {
        match sign {
            b"(" => {
                let before = self.word_before();
                let operator = self.before_last.is(b"operator");
                self.open.push(Open::Round {
                    before: before.filter(|_| !operator),
                    is_expression: before.is_some_and(|piece| takes_expression(piece.text)),
                    has_default: false,
                });
            }
            b"[" => self.open.push(Open::Square),
            b"<" => {
                let is_angle = matches!(self.open.last(), Some(Open::Angle));
                if is_angle && !self.follows(b"operator") || self.follows(b"template") {
                    self.open.push(Open::Angle);
                }
            }
            b">" if matches!(self.open.last(), Some(Open::Angle)) && !self.follows(b"operator") => {
                self.open.pop();
            }
            b")" => self.close_round()?,
            b"]" => return matches!(self.open.pop()?, Open::Square).then_some(()),
            b"{" => self.open_curly(),
            b"}" => return self.close_curly(),
            b";" => self.end_declaration(),
            b"->" if self.is_at_head() => self.head.has_result = true,
            b"=" | b"," => self.set_default(sign == b"="),
            b":" if self.is_at_head() => {
                let before = self.word_before().map(|piece| piece.text);
                if matches!(before, Some(b"public" | b"private" | b"protected")) {
                    self.head = Head::default();
                } else if self.head.has_parameters && self.follows(b")") {
                    self.head.has_initialisers = true;
                } else {
                    self.head.has_colon = true;
                }
            }
            _ => {}
        }
        Some(())
    }

    fn close_round(&mut self) -> Option<()> {
        let Open::Round {
            before,
            is_expression,
            ..
        } = self.open.pop()?
        else {
            return None;
        };
        if self.is_at_head()
            && !is_expression
            && !self.head.has_initialisers
            && !self.head.has_result
        {
            self.head.has_parameters = before.is_some();
        }
        Some(())
    }

    fn set_default(&mut self, has: bool) {
        let operator = self.follows(b"operator");
        match self.open.last_mut() {
            Some(Open::Round { has_default, .. }) => *has_default = has,
            Some(Open::Square | Open::Angle) => {}
            Some(Open::Curly { .. }) | None => self.head.has_equals |= has && !operator,
        }
    }

    fn end_declaration(&mut self) {
        while matches!(self.open.last(), Some(Open::Angle)) {
            self.open.pop();
        }
        if self.is_at_head() {
            self.head = Head::default();
        }
    }

    fn close_curly(&mut self) -> Option<()> {
        while matches!(self.open.last(), Some(Open::Angle)) {
            self.open.pop();
        }
        let Open::Curly { scope, head } = self.open.pop()? else {
            return None;
        };
        // An initialiser does not end its declaration.
        self.head = match scope {
            Scope::Other => head,
            _ => Head::default(),
        };
        Some(())
    }

    /// Whether the last piece is this.
    fn follows(&self, text: &[u8]) -> bool {
        self.last.is(text)
    }

    fn open_curly(&mut self) {
        let scope = self.scope_of_curly();
        let head = std::mem::take(&mut self.head);
        self.open.push(Open::Curly { scope, head });
    }

    fn scope_of_curly(&self) -> Scope {
        let is_inside =
            |open: &Open| matches!(open, Open::Curly { scope, .. } if !scope.is_outside());
        let head = &self.head;
        let is_at_head = self.is_at_head();
        if is_at_head && head.class.is_some() && !head.has_equals {
            return Scope::Class;
        }
        let inner = self
            .open
            .iter()
            .rev()
            .find(|open| matches!(open, Open::Curly { .. }));
        if inner.is_some_and(is_inside) {
            return Scope::Block;
        }
        let is_linkage = self.before_last.is(b"extern") && self.last.text.starts_with(b"\"");
        if is_at_head && (head.is_namespace || is_linkage) {
            return Scope::Outer;
        }
        let last = self.last.text;
        // The braces of a variable or of a member follow its name.
        let is_end = matches!(last, b")" | b"const" | b"noexcept") || head.has_result;
        let is_body = match head.has_initialisers {
            true => matches!(last, b")" | b"}"),
            false => is_end && head.has_parameters && !head.has_equals && !head.has_colon,
        };
        let is_other = matches!(
            inner,
            Some(Open::Curly {
                scope: Scope::Other,
                ..
            })
        );
        if is_at_head && is_body && !is_other {
            return Scope::Body;
        }
        Scope::Other
    }

    /// Whether no bracket of the current declaration is open.
    fn is_at_head(&self) -> bool {
        matches!(self.open.last(), None | Some(Open::Curly { .. }))
    }

    fn word_before(&self) -> Option<Piece<'t>> {
        (self.last.kind == Kind::Word).then_some(self.last)
    }

    /// The innermost braces.
    fn scope(&self) -> Option<(Scope, &Head<'t>)> {
        self.open.iter().rev().find_map(|open| match open {
            Open::Curly { scope, head } => Some((*scope, head)),
            _ => None,
        })
    }

    /// Checks a place of a name that asks. `None` if it may be called from elsewhere without a name.
    fn name(&mut self, name: Piece<'t>, sort: Sort) -> Option<()> {
        let mut ahead = self.reader;
        let mut next = ahead.next().ok()?;
        if sort == Sort::Function {
            // `(name)()` is a call. Otherwise a function without arguments is only its address, which has no defaults.
            while matches!(&next, Found::Piece(piece) if piece.is(b")")) {
                next = ahead.next().ok()?;
            }
            let is_call = |piece: &Piece| piece.is(b"(") || piece.is(b"<");
            match &next {
                Found::Piece(piece) if !is_call(piece) => return Some(()),
                Found::Piece(_) | Found::Directive(_) | Found::End => {}
            }
        }
        self.count(self.reader.path);
        self.count(ahead.path);
        match sort {
            Sort::Builtin | Sort::Function => self.call(),
            Sort::Class => self.mention(name, &next),
        }
    }

    fn count(&mut self, path: &'t [u8]) {
        if !self.files.contains(&path) {
            self.files.push(path);
        }
    }

    /// A place where a function may be called: harmless where its line is a line of this file. In a default argument it is
    /// one of the caller's, so the function there asks too.
    fn call(&mut self) -> Option<()> {
        let mut asking = Vec::new();
        let scope = self.scope().map(|(scope, _)| scope);
        for open in self.open.iter().rev() {
            match open {
                Open::Round {
                    has_default,
                    is_expression,
                    before,
                } => {
                    if *has_default && !is_expression {
                        // A closure's parameters have no name before them.
                        asking.push((*before)?);
                    }
                }
                Open::Angle => return None,
                Open::Square => {}
                Open::Curly { .. } => break,
            }
        }
        let is_inside = scope.is_some_and(|scope| !scope.is_outside());
        if is_inside {
            return asking.is_empty().then_some(());
        }
        // A member's initialiser runs where the class is made.
        let is_member = scope == Some(Scope::Class) && self.head.has_equals;
        if scope == Some(Scope::Other) || is_member && !self.head.is_using {
            return None;
        }
        let mut asking = asking.into_iter();
        asking.try_for_each(|function| self.names.add(self.text, function.text, function.at))
    }

    /// A place of a class with a constructor that asks. Whoever gets at the class without this name can call that.
    fn mention(&self, name: Piece, next: &Found) -> Option<()> {
        let is_next = |text: &[u8]| matches!(next, Found::Piece(piece) if piece.is(text));
        let scope = self.scope();
        let is_key = self.last.is(b"class") || self.last.is(b"struct");
        let is_declared = is_key && self.is_at_head();
        let is_harmless = match scope {
            // `throw name(...)`: what is caught has this name again.
            Some((Scope::Body | Scope::Block, _)) => self.is_thrown(name) && is_next(b"("),
            Some((Scope::Class, head)) if is_named(head, name.text) => {
                let constructor = self.is_at_head() && is_next(b"(") && !self.head.has_equals;
                constructor || self.is_parameter() && is_next(b"&")
            }
            None | Some((Scope::Outer, _)) => {
                self.is_at_head() && self.head.is_using && !self.head.has_equals
            }
            Some(_) => false,
        };
        (is_harmless || is_declared).then_some(())
    }

    /// Whether `throw` and at most a qualifier are before the name.
    fn is_thrown(&self, name: Piece) -> bool {
        let Some(mut reader) = self.thrown else {
            return false;
        };
        while let Ok(Found::Piece(piece)) = reader.next() {
            if piece.at == name.at {
                return true;
            }
            if piece.kind != Kind::Word && !piece.is(b"::") {
                return false;
            }
        }
        false
    }

    /// Whether this place is among parameters, and not in a default.
    fn is_parameter(&self) -> bool {
        let inner = self.open.iter().rev();
        let mut inner = inner.take_while(|open| !matches!(open, Open::Curly { .. }));
        inner.all(|open| {
            matches!(
                open,
                Open::Round {
                    has_default: false,
                    ..
                }
            )
        }) && !self.is_at_head()
    }
}

impl Scope {
    /// Whether this is not a function's body.
    fn is_outside(self) -> bool {
        match self {
            Self::Outer | Self::Class | Self::Other => true,
            Self::Body | Self::Block => false,
        }
    }
}

/// Whether the head is that of the class of this name.
fn is_named(head: &Head, word: &[u8]) -> bool {
    let Some(text) = head.class else { return false };
    let end = memchr::memchr3(b'{', b';', b':', text).unwrap_or(text.len());
    whole_words(&text[..end], word).next().is_some()
}

/// Keywords before brackets that hold no parameters.
fn takes_expression(word: &[u8]) -> bool {
    matches!(
        word,
        b"alignas"
            | b"alignof"
            | b"decltype"
            | b"explicit"
            | b"for"
            | b"if"
            | b"noexcept"
            | b"requires"
            | b"return"
            | b"sizeof"
            | b"static_assert"
            | b"switch"
            | b"while"
            | b"__asm__"
            | b"__attribute"
            | b"__attribute__"
            | b"__declspec"
    )
}
