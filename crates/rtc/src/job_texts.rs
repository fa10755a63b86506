//! A program's texts as NVRTC takes them. They can be sent to another process.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use crate::c_text::c_text;
use crate::error::Error;
use crate::nvrtc::{CompileJob, Take};
use crate::request::{CompileRequest, Text, program_name};
use crate::target::Target;

/// The texts of one compilation, in the form of C.
pub(crate) struct JobTexts {
    source: CString,
    name: CString,
    headers: Vec<(CString, CString)>,
    expressions: Vec<CString>,
    options: Vec<CString>,
    take: Take,
}

/// Source, name, headers, name expressions, options, and the image to take.
type Sent<'t> = (
    &'t [u8],
    &'t [u8],
    Vec<(&'t [u8], &'t [u8])>,
    Vec<&'t [u8]>,
    Vec<&'t [u8]>,
    u8,
);

impl JobTexts {
    /// The texts of `request`.
    ///
    /// # Errors
    /// A text has a NUL.
    pub(crate) fn new_checked(
        request: &CompileRequest,
        options: &[Vec<u8>],
    ) -> Result<Self, Error> {
        let header = |header: &Text| {
            Ok((
                c_text("name of a header", header.name.as_bytes())?,
                c_text("header", header.text.as_bytes())?,
            ))
        };
        let name = program_name(&request.plain_name());
        let expressions = request.name_expressions.iter();
        Ok(Self {
            source: c_text("source", request.whole_text().as_bytes())?,
            name: c_text("name", name.as_os_str().as_bytes())?,
            headers: request
                .headers
                .iter()
                .map(header)
                .collect::<Result<_, Error>>()?,
            expressions: expressions
                .map(|expression| c_text("name expression", expression.as_bytes()))
                .collect::<Result<_, _>>()?,
            options: options
                .iter()
                .map(|option| c_text("option", option))
                .collect::<Result<_, _>>()?,
            take: match request.target {
                Target::Cubin(_) => Take::Cubin,
                Target::Ptx(_) => Take::Ptx,
                Target::LtoIr(_) => Take::LtoIr,
            },
        })
    }

    /// The job for NVRTC, which `stop` can end.
    pub(crate) fn job<'j>(&'j self, stop: Option<&'j (dyn Fn() -> bool + Sync)>) -> CompileJob<'j> {
        CompileJob {
            source: &self.source,
            name: &self.name,
            headers: &self.headers,
            expressions: &self.expressions,
            options: &self.options,
            take: self.take,
            stop,
        }
    }

    /// How many names of the image are asked for.
    pub(crate) fn expressions(&self) -> usize {
        self.expressions.len()
    }

    /// The texts as bytes for another process.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let headers = self.headers.iter();
        let sent: Sent<'_> = (
            self.source.as_bytes(),
            self.name.as_bytes(),
            headers
                .map(|(name, text)| (name.as_bytes(), text.as_bytes()))
                .collect(),
            self.expressions.iter().map(|one| one.as_bytes()).collect(),
            self.options.iter().map(|one| one.as_bytes()).collect(),
            match self.take {
                Take::Ptx => 0,
                Take::Cubin => 1,
                Take::LtoIr => 2,
            },
        );
        // Numbers and texts can always be written.
        postcard::to_allocvec(&sent).unwrap_or_default()
    }

    /// Reads the bytes of [`JobTexts::to_bytes`]; `None` if they are not valid.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let read = postcard::take_from_bytes::<Sent<'_>>(bytes);
        let Ok(((source, name, headers, expressions, options, take), [])) = read else {
            return None;
        };
        let text = |bytes: &[u8]| CString::new(bytes).ok();
        let list = |all: Vec<&[u8]>| all.into_iter().map(text).collect::<Option<Vec<_>>>();
        let header = |(name, content): (&[u8], &[u8])| Some((text(name)?, text(content)?));
        Some(Self {
            source: text(source)?,
            name: text(name)?,
            headers: headers.into_iter().map(header).collect::<Option<_>>()?,
            expressions: list(expressions)?,
            options: list(options)?,
            take: match take {
                0 => Take::Ptx,
                1 => Take::Cubin,
                2 => Take::LtoIr,
                _ => return None,
            },
        })
    }
}
