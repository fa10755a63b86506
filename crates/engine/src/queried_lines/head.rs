//! What a declaration has had so far, outside of its brackets: whether its braces are those of a class or of a function.

use super::reader::{Piece, TokenKind};

/// A declaration, as far as it was read.
#[derive(Clone, Copy, Default)]
pub struct Head<'t> {
    pub class: Option<Class<'t>>,
    pub is_using: bool,
    pub is_typedef: bool,
    pub is_namespace: bool,
    pub has_equals: bool,
    /// Whether a `:` was there that begins no list of initialisers.
    pub has_colon: bool,
    pub function: FunctionHead,
    /// Whether `operator` was there, and no `=`: only a function has that name.
    pub has_operator: bool,
    /// Whether `<` follows `]`: these may be a closure's template parameters.
    pub has_template_closure: bool,
    /// How many `<` are open. Those of a template's parameters are brackets of their own.
    pub angles: usize,
    /// Whether this follows the braces of a class, without a `;`.
    pub follows_class: bool,
}

/// Whether this declares a function whose body may follow.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum FunctionHead {
    #[default]
    No,
    /// After its parameters, and perhaps `const`, `noexcept` or attributes.
    Declared,
    /// After `->` or `requires`: anything may follow.
    Tail,
    /// In a constructor's list of initialisers.
    Initialisers,
}

/// The keyword `class`, `struct`, `union` or `enum`, and what followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Class<'t> {
    pub name: &'t [u8],
    /// Where the name is.
    pub at: usize,
    /// Whether the keyword began the declaration.
    pub is_first: bool,
    part: Part,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// The name, and before it attributes.
    Name,
    Final,
    Bases,
    /// The name is a part of a declaration of something else.
    Other,
}

impl<'t> Class<'t> {
    /// `before` is the piece before the keyword.
    pub fn new(before: Piece) -> Self {
        let first: [&[u8]; 6] = [b"", b";", b"{", b"}", b">", b":"];
        let is_first = before.kind == TokenKind::Sign && first.contains(&before.text);
        Self {
            name: b"",
            at: 0,
            is_first,
            part: Part::Name,
        }
    }

    /// Whether braces here are its own.
    pub fn may_open(&self) -> bool {
        self.part != Part::Other
    }

    /// Takes a piece outside of brackets. `angles` counts the open `<`.
    fn take(&mut self, piece: Piece<'t>, last: Piece, angles: usize) {
        if self.part == Part::Bases || angles > 0 {
            return;
        }
        let opens_brackets = piece.is(b"(") && takes_expression(last.text) || piece.is(b"[");
        self.part = match (self.part, piece.kind) {
            (Part::Name, TokenKind::Word) if is_class_key(piece.text) && self.name.is_empty() => {
                Part::Name
            }
            (Part::Name, TokenKind::Word) if takes_expression(piece.text) => Part::Name,
            (Part::Name, TokenKind::Word) if self.name.is_empty() || last.is(b"::") => {
                self.name = piece.text;
                self.at = piece.at;
                Part::Name
            }
            (Part::Name, TokenKind::Word) if piece.is(b"final") => Part::Final,
            (Part::Name | Part::Final, TokenKind::Sign) if piece.is(b":") => Part::Bases,
            (Part::Name, TokenKind::Sign)
                if opens_brackets || matches!(piece.text, b"::" | b"<" | b">" | b"{") =>
            {
                Part::Name
            }
            (Part::Final, TokenKind::Sign) if piece.is(b"{") => Part::Final,
            _ => Part::Other,
        };
    }
}

impl<'t> Head<'t> {
    /// Takes a piece outside of brackets, or an opening bracket. `before_last` and `last` are the pieces before it.
    pub fn take(&mut self, piece: Piece<'t>, last: Piece, before_last: Piece) {
        let operator = last.is(b"operator") || before_last.is(b"operator");
        if piece.is(b"<") && !operator && !last.is(b"template") {
            self.angles += 1;
            self.has_template_closure |= last.is(b"]");
        } else if piece.is(b">") && !operator {
            self.angles = self.angles.saturating_sub(1);
        }
        if let Some(class) = &mut self.class {
            class.take(piece, last, self.angles);
        } else if is_class_key(piece.text) && piece.kind == TokenKind::Word {
            let mut class = Class::new(last);
            if self.has_equals || self.function != FunctionHead::No || self.angles > 0 {
                class.part = Part::Other;
            }
            self.class = Some(class);
        }
        match piece.text {
            b"namespace" => self.is_namespace = true,
            b"using" => self.is_using = true,
            b"typedef" => self.is_typedef = true,
            b"operator" => self.has_operator |= !self.has_equals && self.angles == 0,
            b"=" => self.has_equals |= !operator,
            b":" => self.colon(last),
            _ => {}
        }
        if self.function == FunctionHead::Declared {
            self.after_parameters(piece, last);
        }
    }

    fn colon(&mut self, last: Piece) {
        if matches!(last.text, b"public" | b"private" | b"protected") {
            *self = Self::default();
        } else if self.function == FunctionHead::Declared {
            self.function = FunctionHead::Initialisers;
        } else {
            self.has_colon = true;
        }
    }

    fn after_parameters(&mut self, piece: Piece, last: Piece) {
        let goes_on = match piece.kind {
            TokenKind::Word => {
                takes_expression(piece.text)
                    || matches!(
                        piece.text,
                        b"const" | b"volatile" | b"override" | b"final" | b"try"
                    )
            }
            TokenKind::Sign => {
                // Another list of parameters decides again, when it ends.
                matches!(piece.text, b"&" | b"{" | b";" | b"->" | b"(" | b"[")
            }
            TokenKind::Literal => false,
        };
        self.function = match piece.text {
            b"->" | b"requires" => FunctionHead::Tail,
            b"(" if !takes_expression(last.text) => FunctionHead::No,
            _ if goes_on => FunctionHead::Declared,
            _ => FunctionHead::No,
        };
    }

    /// Takes the end of round brackets, which may be a function's parameters.
    pub fn close_round(&mut self, are_parameters: bool) {
        if matches!(self.function, FunctionHead::No | FunctionHead::Declared) {
            self.function = match are_parameters && self.angles == 0 {
                true => FunctionHead::Declared,
                false => FunctionHead::No,
            };
        }
    }

    /// Whether braces after `last` are a function's body.
    pub fn is_body(&self, last: Piece) -> bool {
        match self.function {
            FunctionHead::No if !self.has_operator => false,
            FunctionHead::No | FunctionHead::Declared | FunctionHead::Tail => {
                !self.has_equals && !self.has_colon
            }
            // After a name, these are an initialiser's.
            FunctionHead::Initialisers => last.kind != TokenKind::Word && !last.is(b">"),
        }
    }
}

/// Whether `name`, with `before` before it and brackets after it, is the name of a function of the class that is named
/// `class`. `int (a)` is a variable, and so is `const T (a)`.
pub fn is_function_of_class(name: &[u8], before: Piece, class: &[u8]) -> bool {
    if name == class {
        return true;
    }
    // Reserved names may be a compiler's own words.
    let is_reserved = |word: &[u8]| matches!(word, [b'_', second, ..] if *second == b'_' || second.is_ascii_uppercase());
    if is_reserved(name) || is_part_of_type(name) || is_specifier(name) || takes_expression(name) {
        return false;
    }
    match before.kind {
        TokenKind::Word => !is_reserved(before.text) && !is_specifier(before.text),
        TokenKind::Sign => matches!(before.text, b">" | b"*" | b"&"),
        TokenKind::Literal => false,
    }
}

pub fn is_class_key(word: &[u8]) -> bool {
    matches!(word, b"class" | b"struct" | b"union" | b"enum")
}

/// Keywords of types, which are no names of functions.
pub fn is_part_of_type(word: &[u8]) -> bool {
    matches!(
        word,
        b"auto"
            | b"bool"
            | b"char"
            | b"char8_t"
            | b"char16_t"
            | b"char32_t"
            | b"const"
            | b"double"
            | b"float"
            | b"int"
            | b"long"
            | b"short"
            | b"signed"
            | b"unsigned"
            | b"void"
            | b"volatile"
            | b"wchar_t"
    )
}

/// Keywords that may be before a type: `const T (a)` declares a variable.
fn is_specifier(word: &[u8]) -> bool {
    matches!(
        word,
        b"const"
            | b"consteval"
            | b"constexpr"
            | b"constinit"
            | b"explicit"
            | b"export"
            | b"extern"
            | b"friend"
            | b"inline"
            | b"mutable"
            | b"register"
            | b"static"
            | b"template"
            | b"thread_local"
            | b"typedef"
            | b"typename"
            | b"using"
            | b"virtual"
            | b"volatile"
    ) || is_class_key(word)
}

/// Keywords that may also stand after the type: `T const f()`. After them is no other type.
pub fn may_follow_type(word: &[u8]) -> bool {
    matches!(
        word,
        b"const"
            | b"consteval"
            | b"constexpr"
            | b"inline"
            | b"static"
            | b"virtual"
            | b"volatile"
            | b"__inline"
            | b"__inline__"
    )
}

/// Keywords of attributes.
pub fn is_attribute(word: &[u8]) -> bool {
    matches!(
        word,
        b"alignas" | b"__attribute" | b"__attribute__" | b"__declspec"
    )
}

/// Keywords before brackets that hold no parameters.
pub fn takes_expression(word: &[u8]) -> bool {
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
            | b"throw"
            | b"typeof"
            | b"while"
            | b"__alignof__"
            | b"__asm__"
            | b"__typeof__"
    ) || is_attribute(word)
}
