//! Arguments of Python's as the library takes them, or the error that names them.

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use warpcc_rtc::{Piece, PieceKind, RealArch, Target, Text};

use crate::image::Image;
use crate::{driver, errors};

/// The current GPU's compute capability.
pub(crate) fn capability(py: Python<'_>) -> PyResult<u32> {
    let device = py.detach(|| driver::device(driver::current()));
    let device = device.map_err(|error| {
        let text = format!("arch: no GPU to ask, so name one, such as arch=\"sm_90\" ({error})");
        errors::argument(py, text)
    })?;
    Ok(device.capability())
}

pub(crate) fn target(py: Python<'_>, arch: &str) -> PyResult<Target> {
    arch.parse()
        .map_err(|error: warpcc_rtc::NotATarget| errors::argument(py, format!("arch: {error}")))
}

pub(crate) fn real(py: Python<'_>, arch: &str) -> PyResult<RealArch> {
    match target(py, arch)? {
        Target::Cubin(arch) => Ok(arch),
        _ => Err(errors::argument(
            py,
            format!("arch: {arch} is not a GPU architecture such as sm_90"),
        )),
    }
}

pub(crate) fn seconds(py: Python<'_>, timeout: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(timeout)
        .map_err(|_| errors::argument(py, format!("timeout: {timeout} is not a number of seconds")))
}

pub(crate) fn deadline(py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Instant>> {
    let limit = timeout.map(|timeout| seconds(py, timeout)).transpose()?;
    Ok(limit.and_then(|limit| Instant::now().checked_add(limit)))
}

/// Texts by name, in the dict's order.
pub(crate) fn texts(who: &str, given: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<Text>> {
    let Some(given) = given else {
        return Ok(Vec::new());
    };
    let one = |(name, text): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let pair = name
            .extract::<String>()
            .and_then(|name| Ok((name, text.extract::<String>()?)));
        let (name, text) = pair.map_err(|_| {
            errors::wrong_type(format!("{who}: a dict of names and texts was expected"))
        })?;
        Ok(Text::new(name, text))
    };
    given.iter().map(one).collect()
}

pub(crate) fn bytes_of(who: &str, given: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(text) = given.cast::<PyString>() {
        return Ok(text.to_string().into_bytes());
    }
    match given.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.as_bytes().to_vec()),
        Err(_) => Err(errors::wrong_type(format!(
            "{who}: text or bytes were expected, not {}",
            crate::arrays::type_of(given)
        ))),
    }
}

/// An image, or a pair of a kind and bytes.
pub(crate) fn piece(index: usize, given: &Bound<'_, PyAny>) -> PyResult<Piece> {
    let who = format!("piece {index}");
    if let Ok(image) = given.cast::<Image>() {
        let image = image.get();
        let kind = match image.image.compiled.target {
            Target::Cubin(_) => PieceKind::Cubin,
            Target::Ptx(_) => PieceKind::Ptx,
            Target::LtoIr(_) => PieceKind::LtoIr,
        };
        return Ok(Piece {
            name: image.name.as_str().into(),
            kind,
            bytes: image.image.compiled.image.clone(),
        });
    }
    let pair = given.extract::<(String, Bound<'_, PyAny>)>();
    let (word, bytes) = pair.map_err(|_| {
        errors::wrong_type(format!("{who}: an Image or (kind, bytes) was expected"))
    })?;
    let kinds = [
        PieceKind::Cubin,
        PieceKind::Ptx,
        PieceKind::LtoIr,
        PieceKind::Fatbin,
        PieceKind::Object,
        PieceKind::Library,
    ];
    let kind = kinds
        .into_iter()
        .find(|kind| kind.word() == word)
        .ok_or_else(|| {
            let known = kinds.map(PieceKind::word).join(", ");
            errors::argument(
                given.py(),
                format!("{who}: unknown kind {word:?}; known kinds are {known}"),
            )
        })?;
    Ok(Piece {
        name: who.as_str().into(),
        kind,
        bytes: bytes_of(&who, &bytes)?.into(),
    })
}
