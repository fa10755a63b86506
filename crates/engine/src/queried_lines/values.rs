//! What may become of a function that is named and not called there.
//!
//! In C++ a default argument belongs to a name: a call by a pointer or a reference has none. To NVIDIA's front end it belongs to
//! the function's type (seen on 13.0 and 13.5), so it also works where the type is copied: by `decltype` and `decltype(auto)`,
//! through a template's parameter such as `auto &`, and where the name is in brackets with more. Only types that are deduced for
//! a variable, a parameter or a result lose it. gcc accepts none of it but a function that is declared with `decltype`. It does
//! not see device code.

use super::brackets::{Braces, OpenBracket, Scope};
use super::head::is_part_of_type;
use super::reader::{NextPiece, Piece, Reader, TokenKind};
use super::scan::Scan;

/// How many bytes may be read again, or as many as the text has. A text with more is not understood.
const MOST_READ_AGAIN: usize = 16 << 20;

/// Where a name is that is not called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// Nothing can call it by what is made of the name here.
    Harmless,
    /// It may be called here: `(a ? name : other)()`.
    Called,
    /// Code that does not have the name may call it.
    Escapes,
}

impl Scan<'_> {
    /// After the end of a declaration or a statement.
    pub fn begin_declaration(&mut self) {
        let is_around = |open: &OpenBracket| {
            matches!(
                open,
                OpenBracket::Braces(Braces {
                    scope: Scope::Outer | Scope::Class,
                    ..
                })
            )
        };
        if self.open.iter().all(is_around) {
            self.declaration_at = self.reader.at;
        }
    }

    /// What may become of the function that is named here.
    pub fn value(&mut self, name: Piece) -> Value {
        // `int name` is a variable.
        if is_part_of_type(self.last.text) {
            return Value::Harmless;
        }
        // In a large function with many such names, each one reads all before it.
        self.read_again += name.at - self.declaration_at;
        if self.reads_too_much() {
            return Value::Escapes;
        }
        // A text that ends here, or that cannot be split, is refused by the reader of the whole text.
        let mut end = name.at;
        let value = self.value_if_read(name, &mut end);
        self.read_again += end - name.at;
        value.unwrap_or(Value::Escapes)
    }

    fn reads_too_much(&self) -> bool {
        self.read_again > MOST_READ_AGAIN.max(self.text.len())
    }

    /// Sets `end` to the end of what was read.
    fn value_if_read(&self, name: Piece, end: &mut usize) -> Option<Value> {
        let mut reader = Reader::from(self.text, self.declaration_at);
        let mut open = Vec::new();
        let mut last = Piece::NONE;
        let mut before_last = Piece::NONE;
        // How many brackets were open where a type is copied.
        let mut copies: Vec<usize> = Vec::new();
        // How many were open before the operands of what may be such an operator.
        let mut operators: Vec<usize> = Vec::new();
        loop {
            let piece = next(&mut reader)?;
            if piece.at >= name.at {
                break;
            }
            if piece.kind == TokenKind::Word && copies_type(piece.text) {
                copies.push(open.len());
            }
            if piece.is(b"(") && may_be_operator(last, before_last) {
                operators.push(open.len());
            }
            take(&mut open, piece, last)?;
            match piece.text {
                // The end of a statement, and of all that was in braces.
                b";" if open.last() == Some(&b'{') => copies.retain(|at| *at < open.len()),
                b"}" => copies.retain(|at| *at <= open.len()),
                b")" => operators.retain(|at| *at < open.len()),
                _ => {}
            }
            before_last = std::mem::replace(&mut last, piece);
        }
        if !copies.is_empty() || !operators.is_empty() {
            return Some(Value::Escapes);
        }
        let mut known = open.len();
        last = name;
        // The value of an operator is another one, but its type may hold that of the name: `name + 0` in a template's arguments
        // is a pointer. Three dots are three pieces.
        let ends: [&[u8]; 10] = [b")", b"]", b"}", b">", b"<", b",", b";", b":", b"?", b"."];
        let is_operand = |next: Piece| !ends.iter().any(|end| next.is(end));
        if !open.contains(&b'<') && next(&mut { self.reader }).is_some_and(is_operand) {
            return Some(Value::Harmless);
        }
        loop {
            let is_open = |bracket: &u8| matches!(bracket, b'(' | b'<');
            if !open[..known].iter().any(is_open) {
                return Some(Value::Harmless);
            }
            let piece = next(&mut reader)?;
            *end = reader.at;
            let ends_angle = piece.is(b">") && open.last() == Some(&b'<');
            take(&mut open, piece, last)?;
            last = piece;
            if open.len() >= known {
                continue;
            }
            if ends_angle {
                return Some(Value::Escapes);
            }
            known = open.len();
            if piece.is(b")") && next(&mut { reader })?.is(b"(") {
                return Some(Value::Called);
            }
        }
    }

    /// Whether template arguments follow the name, and then a call.
    pub fn is_called_with_arguments(&mut self) -> bool {
        let mut reader = self.reader;
        let mut open = Vec::new();
        let mut last = Piece::NONE;
        if self.reads_too_much() {
            return false;
        }
        while let Some(piece) = next(&mut reader) {
            let before = open.len();
            if take(&mut open, piece, last).is_none() {
                break;
            }
            last = piece;
            if open.is_empty() {
                self.read_again += reader.at - self.reader.at;
                let is_end = before == 1 && piece.is(b">");
                return is_end && next(&mut reader).is_some_and(|piece| piece.is(b"("));
            }
        }
        self.read_again += reader.at - self.reader.at;
        false
    }
}

/// The next piece; `None` at the end.
fn next<'t>(reader: &mut Reader<'t>) -> Option<Piece<'t>> {
    loop {
        match reader.next().ok()? {
            NextPiece::Piece(piece) => return Some(piece),
            NextPiece::Directive(_) => {}
            NextPiece::End => return None,
        }
    }
}

/// Opens or closes a bracket; `None` if it does not match.
fn take(open: &mut Vec<u8>, piece: Piece, last: Piece) -> Option<()> {
    if piece.kind != TokenKind::Sign {
        return Some(());
    }
    let opening = match piece.text {
        b"(" | b"[" | b"{" => {
            open.push(piece.text[0]);
            return Some(());
        }
        b"<" => {
            // That of an operator's name is none.
            if !last.is(b"operator") {
                open.push(b'<');
            }
            return Some(());
        }
        b">" => {
            if open.last() == Some(&b'<') && !last.is(b"operator") {
                open.pop();
            }
            return Some(());
        }
        b")" => Some(b'('),
        b"]" => Some(b'['),
        b"}" => Some(b'{'),
        b";" => None,
        _ => return Some(()),
    };
    while open.last() == Some(&b'<') {
        open.pop();
    }
    match opening {
        Some(opening) => (open.pop()? == opening).then_some(()),
        None => Some(()),
    }
}

/// Words that make a type of an expression as it is: `decltype`, and gcc's `typeof` and `__typeof__`.
fn copies_type(word: &[u8]) -> bool {
    let has = |part: &[u8]| memchr::memmem::find(word, part).is_some();
    has(b"decltype") || has(b"typeof")
}

/// Whether brackets after `last` may hold the operand of an operator of the compiler's own. Such operators have reserved names,
/// as some functions of libraries do.
fn may_be_operator(last: Piece, before_last: Piece) -> bool {
    let ends_qualifier: [&[u8]; 3] = [b"::", b".", b"->"];
    last.kind == TokenKind::Word
        && last.text.starts_with(b"__")
        && !ends_qualifier.iter().any(|end| before_last.is(end))
}
