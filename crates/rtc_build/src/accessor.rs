//! The C source that puts a bundle into a program, and the header by which C and C++ get it.

use std::fmt::Write as _;

use crate::embed::BundleOutput;

/// The name of an embedded bundle in a program: `mylib::headers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accessor {
    parts: Vec<String>,
}

/// Why a text names no accessor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no name for an embedded bundle: write an identifier, or one in namespaces, such as mylib::headers"
)]
pub struct NotAnAccessor(String);

impl std::str::FromStr for Accessor {
    type Err = NotAnAccessor;

    fn from_str(text: &str) -> Result<Self, NotAnAccessor> {
        let is_identifier = |part: &&str| {
            let first = |c: char| c.is_ascii_alphabetic() || c == '_';
            part.starts_with(first) && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let parts: Vec<&str> = text.split("::").collect();
        if !parts.iter().all(is_identifier) {
            return Err(NotAnAccessor(text.to_owned()));
        }
        let parts = parts.into_iter().map(str::to_owned).collect();
        Ok(Self { parts })
    }
}

impl Accessor {
    /// The name in C: `mylib_headers`.
    pub fn symbol(&self) -> String {
        self.parts.join("_")
    }

    /// A source of C (and of C++) that has the bundle in the file at `path`, for every compiler that understands `.incbin`.
    pub fn source(&self, path: &str, made: &BundleOutput) -> String {
        let symbol = self.symbol();
        // A text in the assembler's quotes, in C's quotes.
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let path = quoted(&quoted(path));
        let digest = &made.digest;
        // Hidden: two libraries of a program may embed bundles of one name. The digest changes this text with the content, so
        // that compiler caches which do not look into .incbin see it.
        format!(
            "/* The embedded bundle {symbol}, written by `warpcc rtc embed`. Digest: {digest} */\n\
             __asm__(\n\
             \x20 \".pushsection .rodata\\n\"\n\
             \x20 \".balign 16\\n\"\n\
             \x20 \".globl {symbol}_bundle_begin\\n\"\n\
             \x20 \".hidden {symbol}_bundle_begin\\n\"\n\
             \x20 \".type {symbol}_bundle_begin, %object\\n\"\n\
             \x20 \"{symbol}_bundle_begin:\\n\"\n\
             \x20 \".incbin \\\"{path}\\\"\\n\"\n\
             \x20 \".globl {symbol}_bundle_end\\n\"\n\
             \x20 \".hidden {symbol}_bundle_end\\n\"\n\
             \x20 \".type {symbol}_bundle_end, %object\\n\"\n\
             \x20 \"{symbol}_bundle_end:\\n\"\n\
             \x20 \".byte 0\\n\"\n\
             \x20 \".popsection\\n\");\n\
             extern const char {symbol}_bundle_digest[] __attribute__((visibility(\"hidden\")));\n\
             const char {symbol}_bundle_digest[] = \"{digest}\";\n"
        )
    }

    /// The header by which a program gets the bundle: a function in C, and in C++ one in its namespace.
    pub fn header(&self) -> String {
        let symbol = self.symbol();
        let guard = format!("{}_BUNDLE_H", symbol.to_uppercase());
        let (spaces, name) = self.parts.split_at(self.parts.len() - 1);
        let name = name.concat();
        let mut open = String::new();
        for space in spaces {
            _ = write!(open, "namespace {space} {{ ");
        }
        let close = "} ".repeat(spaces.len());
        // In C++ without namespaces, the function of C has the name.
        let cpp_name = match spaces {
            [] => format!("{name}_bundle"),
            _ => name,
        };
        format!(
            "/* The embedded bundle {symbol}, written by `warpcc rtc embed`. */\n\
             #ifndef {guard}\n\
             #define {guard}\n\
             \n\
             #include <warpcc_rtc.h>\n\
             \n\
             #ifdef __cplusplus\n\
             extern \"C\" {{\n\
             #endif\n\
             extern const unsigned char {symbol}_bundle_begin[] __attribute__((visibility(\"hidden\")));\n\
             extern const unsigned char {symbol}_bundle_end[] __attribute__((visibility(\"hidden\")));\n\
             \n\
             /* Opens it, for warpcc_rtc_request_add_bundle. */\n\
             static inline warpcc_rtc_status {symbol}_open(warpcc_rtc_bundle **bundle) {{\n\
             \x20 return warpcc_rtc_bundle_open({symbol}_bundle_begin,\n\
             \x20                               (size_t)({symbol}_bundle_end - {symbol}_bundle_begin), bundle);\n\
             }}\n\
             #ifdef __cplusplus\n\
             }}\n\
             \n\
             #include <warpcc_rtc.hpp>\n\
             \n\
             {open}\n\
             /* Opened by the first caller. */\n\
             static inline const warpcc::rtc::bundle& {cpp_name}() {{\n\
             \x20 static const warpcc::rtc::bundle opened(\n\
             \x20     ::{symbol}_bundle_begin, (size_t)(::{symbol}_bundle_end - ::{symbol}_bundle_begin));\n\
             \x20 return opened;\n\
             }}\n\
             {close}\n\
             #endif\n\
             #endif\n"
        )
    }
}
