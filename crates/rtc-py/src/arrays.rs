//! Arrays of other libraries: what DLPack and `__cuda_array_interface__` say of them, checked.

use std::fmt::Display;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt};
use warpcc_kernels::dtype::DType;
use warpcc_kernels::expression::Number;
use warpcc_kernels::plan::Tensor;
use warpcc_kernels::shape;

use crate::dlpack::{self, CapsuleContent};
use crate::errors;
use crate::exchange::{ArrayUse, Described, Exchange};

/// `DLDeviceType`: host, GPU, pinned host memory, managed memory.
const CPU: i32 = 1;
const CUDA: i32 = 2;
const CUDA_HOST: i32 = 3;
const CUDA_MANAGED: i32 = 13;

/// `kDLFloat` of `DLDataTypeCode`.
const DL_FLOAT: u8 = 2;

/// An array on a GPU.
pub struct Array {
    /// Type, shape, steps, address.
    pub tensor: Tensor,
    /// The GPU, where it is known.
    pub device: Option<i32>,
    /// It must not be written to.
    pub readonly: bool,
    /// It is a copy, so writes to it are lost.
    pub copied: bool,
    /// A stream that must be waited for before it is read.
    pub wait: Option<u64>,
    /// Keeps its description alive.
    _keep: Keep,
}

/// The owner of an array's memory, held until its kernel is under way.
#[expect(dead_code, reason = "held, and looked at by nobody")]
enum Keep {
    Object(Py<PyAny>),
    Tensor(dlpack::Managed),
}

/// Whether an object is `None` or a number of Python's own: not an array, and told from one without a look at
/// attributes.
pub fn is_plain(object: &Bound<'_, PyAny>) -> bool {
    object.is_none() || object.is_instance_of::<PyInt>() || object.is_instance_of::<PyFloat>()
}

/// Whether an object is an array of some kind.
pub fn is_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    Ok(object.hasattr(intern!(py, "__dlpack__"))?
        || object.hasattr(intern!(py, "__cuda_array_interface__"))?)
}

/// A Python number, or what turns into one without losing anything (NumPy's scalars).
pub fn number(who: &dyn Display, object: &Bound<'_, PyAny>) -> PyResult<Option<Number>> {
    let whole = |object: &Bound<'_, PyAny>| {
        object.extract::<i64>().map(Number::Int).map_err(|_| {
            let text = format!("{who}: {object} does not fit into 64 bits");
            errors::argument(object.py(), text)
        })
    };
    if object.is_instance_of::<PyFloat>() {
        return Ok(Some(Number::Float(object.extract()?)));
    }
    if object.is_instance_of::<PyInt>() {
        return whole(object).map(Some);
    }
    if is_array(object)? {
        return Ok(None);
    }
    if object.hasattr("__index__")? {
        return whole(&object.call_method0("__index__")?).map(Some);
    }
    match object.hasattr("__float__")? {
        true => Ok(Some(Number::Float(
            object.call_method0("__float__")?.extract()?,
        ))),
        false => Ok(None),
    }
}

/// Reads an array. `who` is its argument; `described` what [`describe`] said of it; `stream` is where it will be used, which
/// its owner is told.
pub fn read(
    who: &dyn Display,
    object: &Bound<'_, PyAny>,
    described: Option<Described>,
    stream: u64,
) -> PyResult<Array> {
    if let Some(described) = described {
        return by_exchange(who, object, described, stream);
    }
    let py = object.py();
    if object.hasattr(intern!(py, "__dlpack__"))?
        && object.hasattr(intern!(py, "__dlpack_device__"))?
    {
        return by_dlpack(who, object, stream);
    }
    if object.hasattr(intern!(py, "__cuda_array_interface__"))? {
        return by_interface(who, object);
    }
    Err(errors::wrong_type(format!(
        "{who}: {} is not an array: one on a GPU was expected, with __dlpack__ or __cuda_array_interface__ (PyTorch, CuPy, \
         Numba, JAX)",
        type_of(object)
    )))
}

/// Its type's name, with the module.
pub fn type_of(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().fully_qualified_name();
    name.map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}

/// The description of an array from its type's exchange table, where the type has one.
pub fn describe(object: &Bound<'_, PyAny>, purpose: ArrayUse) -> Option<Described> {
    if is_plain(object) {
        return None;
    }
    Exchange::find(object)?.describe(object, purpose)
}

/// The stream that an array's framework works on, where its exchange table told.
pub fn stream_of(described: &Described) -> Option<u64> {
    is_on_a_gpu(described.content.device).then_some(described.stream)
}

fn by_exchange(
    who: &dyn Display,
    object: &Bound<'_, PyAny>,
    described: Described,
    stream: u64,
) -> PyResult<Array> {
    let py = object.py();
    on_a_gpu(py, who, object, described.content.device)?;
    let keep = match described.managed {
        Some(managed) => Keep::Tensor(managed),
        None => Keep::Object(object.clone().unbind()),
    };
    let mut array = by_content(who, object, described.content, keep)?;
    // A `__dlpack__` that is given a stream does this itself.
    array.wait = (described.stream != stream).then_some(described.stream);
    Ok(array)
}

fn by_dlpack(who: &dyn Display, object: &Bound<'_, PyAny>, stream: u64) -> PyResult<Array> {
    let py = object.py();
    let place: (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
    on_a_gpu(py, who, object, place)?;
    let with = PyDict::new(py);
    // 0 is no stream of DLPack's: the default one is 1 there.
    with.set_item("stream", stream.max(1))?;
    with.set_item("max_version", (1, 1))?;
    let capsule = match object.call_method("__dlpack__", (), Some(&with)) {
        // Makers of before DLPack 1.0 do not know the word.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            with.del_item("max_version")?;
            object.call_method("__dlpack__", (), Some(&with))?
        }
        other => other?,
    };
    let content = dlpack::read(who, &capsule)?;
    on_a_gpu(py, who, object, content.device)?;
    by_content(who, object, content, Keep::Object(capsule.unbind()))
}

fn by_content(
    who: &dyn Display,
    object: &Bound<'_, PyAny>,
    content: CapsuleContent,
    keep: Keep,
) -> PyResult<Array> {
    let py = object.py();
    if may_be_negated(&content) && is_negated(object)? {
        let text =
            format!("{who}: its elements are stored negated (is_neg): pass its resolve_neg()");
        return Err(errors::argument(py, text));
    }
    let dtype = dlpack_type(content.dtype).ok_or_else(|| {
        let (code, bits, lanes) = content.dtype;
        let text = format!("a type that DLPack numbers {code}, of {bits} bits and {lanes} lane(s)");
        unknown_type(py, who, &text)
    })?;
    let tensor = Tensor {
        dtype,
        shape: sizes(py, who, &content.shape)?,
        strides: content.strides,
        address: content.address,
    };
    Ok(Array {
        tensor,
        device: Some(content.device.1),
        readonly: content.readonly,
        copied: content.copied,
        wait: None,
        _keep: keep,
    })
}

/// Whether elements may lie apart as the imaginary parts of a conjugated array do, which alone PyTorch holds negated: what
/// DLPack says of these (PyTorch 2.11) leaves the sign out.
fn may_be_negated(content: &CapsuleContent) -> bool {
    let steps = content.strides.iter().flatten();
    let mut pairs = content.shape.iter().zip(steps);
    content.dtype.0 == DL_FLOAT && !pairs.any(|(size, step)| *size > 1 && step.abs() == 1)
}

fn is_negated(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    match object.getattr_opt(intern!(object.py(), "is_neg"))? {
        Some(asked) => asked.call0()?.is_truthy(),
        None => Ok(false),
    }
}

fn is_on_a_gpu((kind, _): (i32, i32)) -> bool {
    matches!(kind, CUDA | CUDA_MANAGED)
}

fn on_a_gpu(
    py: Python<'_>,
    who: &dyn Display,
    object: &Bound<'_, PyAny>,
    device: (i32, i32),
) -> PyResult<()> {
    if is_on_a_gpu(device) {
        return Ok(());
    }
    let place = match device.0 {
        CPU => "on the CPU".to_owned(),
        CUDA_HOST => "in pinned memory of the CPU".to_owned(),
        other => format!("on a device that DLPack numbers {other}"),
    };
    let text = format!(
        "{who}: it is {place} ({}): an array on a CUDA GPU was expected",
        type_of(object)
    );
    Err(errors::argument(py, text))
}

fn unknown_type(py: Python<'_>, who: &dyn Display, what: &str) -> PyErr {
    let known = DType::ALL.map(DType::name).join(", ");
    errors::argument(
        py,
        format!("{who}: it is of {what}; known types are {known}"),
    )
}

/// `DLDataTypeCode` of dlpack.h 1.1.
fn dlpack_type(dtype: (u8, u8, u16)) -> Option<DType> {
    Some(match dtype {
        (0, 8, 1) => DType::I8,
        (0, 16, 1) => DType::I16,
        (0, 32, 1) => DType::I32,
        (0, 64, 1) => DType::I64,
        (1, 8, 1) => DType::U8,
        (1, 16, 1) => DType::U16,
        (1, 32, 1) => DType::U32,
        (1, 64, 1) => DType::U64,
        (2, 16, 1) => DType::F16,
        (2, 32, 1) => DType::F32,
        (2, 64, 1) => DType::F64,
        (4, 16, 1) => DType::BF16,
        (6, 8, 1) => DType::Bool,
        (10, 8, 1) => DType::F8E4M3,
        (12, 8, 1) => DType::F8E5M2,
        _ => return None,
    })
}

/// `typestr` of the array interface: byte order, kind, bytes.
fn interface_type(text: &str) -> Option<DType> {
    let known = text.strip_prefix(['<', '|', '=']).unwrap_or(text);
    Some(match known {
        "b1" => DType::Bool,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        _ => return None,
    })
}

fn sizes(py: Python<'_>, who: &dyn Display, shape: &[i64]) -> PyResult<Vec<u64>> {
    let all: Result<Vec<u64>, _> = shape.iter().map(|size| u64::try_from(*size)).collect();
    all.map_err(|_| {
        errors::argument(
            py,
            format!("{who}: its shape {shape:?} has a negative size"),
        )
    })
}

fn by_interface(who: &dyn Display, object: &Bound<'_, PyAny>) -> PyResult<Array> {
    let py = object.py();
    let described = object.getattr("__cuda_array_interface__")?;
    let wrong =
        |what: &str| errors::argument(py, format!("{who}: its __cuda_array_interface__ {what}"));
    let dict = described
        .cast::<PyDict>()
        .map_err(|_| wrong("is not a dict"))?;
    let get = |key: &str| {
        let found = dict.get_item(key).ok().flatten();
        found.filter(|value| !value.is_none())
    };
    let need = |key: &str| get(key).ok_or_else(|| wrong(&format!("has no {key:?}")));
    let given: Vec<i64> = need("shape")?
        .extract()
        .map_err(|_| wrong("has an invalid shape"))?;
    let typestr: String = need("typestr")?
        .extract()
        .map_err(|_| wrong("has an invalid typestr"))?;
    let dtype = interface_type(&typestr)
        .ok_or_else(|| unknown_type(py, who, &format!("type {typestr:?}")))?;
    let data = need("data")?;
    let (address, readonly): (u64, bool) = data.extract().map_err(|_| wrong("has invalid data"))?;
    if get("mask").is_some() {
        return Err(wrong("has a mask, which is not supported"));
    }
    let in_bytes: Option<Vec<i64>> = match get("strides") {
        None => None,
        Some(strides) => Some(
            strides
                .extract()
                .map_err(|_| wrong("has invalid strides"))?,
        ),
    };
    let strides = in_bytes
        .map(|all| shape::element_strides(&all, dtype.size()))
        .transpose()
        .map_err(|odd| {
            wrong(&format!(
                "has a stride of {odd} bytes, which is not a multiple of the size of {dtype}"
            ))
        })?;
    let wait: Option<u64> = match get("stream") {
        None => None,
        Some(stream) => Some(
            stream
                .extract()
                .map_err(|_| wrong("has an invalid stream"))?,
        ),
    };
    Ok(Array {
        tensor: Tensor {
            dtype,
            shape: sizes(py, who, &given)?,
            strides,
            address,
        },
        device: None,
        readonly,
        copied: false,
        wait,
        _keep: Keep::Object(described.unbind()),
    })
}
