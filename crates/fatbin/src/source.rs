//! Opens and maps the files that paths name. Folders are searched, and wheels are unpacked one member at a time.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;

use crate::work;

use crate::container::FoundImages;
use crate::error::ReadLimits;
use crate::host::{self, Format};

/// Bytes at the start of a file that show its format.
const HEAD: usize = 32;
/// The deepest nesting of folders. Only a loop of mounts is deeper.
const DEEPEST: usize = 64;

/// A file that can be opened, or one inside a wheel.
#[derive(Debug, Clone)]
pub struct BinaryInput {
    /// The file.
    pub path: PathBuf,
    /// The member of the wheel.
    pub member: Option<String>,
    /// The wheel, so that its directory is read once for all its members.
    wheel: Option<Wheel>,
}

impl BinaryInput {
    /// A file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            member: None,
            wheel: None,
        }
    }

    /// A member of a wheel.
    pub fn member(path: impl Into<PathBuf>, member: String) -> Self {
        Self {
            member: Some(member),
            ..Self::file(path)
        }
    }

    fn key(&self) -> (&Path, Option<&str>) {
        (&self.path, self.member.as_deref())
    }
}

impl PartialEq for BinaryInput {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for BinaryInput {}

impl PartialOrd for BinaryInput {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BinaryInput {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl std::fmt::Display for BinaryInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.path.display())?;
        self.member.iter().try_for_each(|m| write!(f, "!{m}"))
    }
}

/// Why a file cannot be read at all.
#[derive(Debug, thiserror::Error)]
#[error("{input}: {why}")]
pub struct FatbinError {
    /// The file.
    pub input: BinaryInput,
    /// The failure.
    pub why: OpenFailure,
}

impl FatbinError {
    /// Whether the file was read, and is of a kind that cannot contain a fat binary.
    pub fn is_no_binary(&self) -> bool {
        matches!(self.why, OpenFailure::Unknown | OpenFailure::Empty)
    }
}

/// Why a file cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenFailure {
    /// The system says no.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The first bytes are of nothing that can hold a fat binary.
    #[error("not an ELF file, PE file, static library, fat binary, cubin, wheel or folder")]
    Unknown,
    /// Nothing in it.
    #[error("the file is empty")]
    Empty,
    /// Too deep, or not a regular file.
    #[error("not a regular file, or a folder nested too deeply")]
    NotRegular,
    /// The wheel's table or a member is damaged.
    #[error("corrupt wheel: {0}")]
    Wheel(#[from] zip::result::ZipError),
    /// Members of a wheel share bytes.
    #[error("corrupt wheel: its members overlap")]
    Overlap,
    /// A member of a wheel is larger than the limit.
    #[error("refused: a member of {0} bytes, more than the limit of {1}")]
    TooLarge(u64, u64),
}

/// An opened file, mapped.
#[derive(Debug)]
pub struct Binary {
    /// The file or wheel's member that it is from.
    pub input: BinaryInput,
    /// The format of its content.
    pub format: Format,
    map: Mmap,
}

impl Binary {
    /// Opens a file, or unpacks a wheel's member to a temporary file without a name.
    ///
    /// # Errors It cannot be read, or is of a kind that cannot contain a fat binary.
    pub fn open(input: BinaryInput, limits: &ReadLimits) -> Result<Self, FatbinError> {
        match Self::try_open(&input, limits) {
            Ok((map, format)) => Ok(Self { input, format, map }),
            Err(why) => Err(FatbinError { input, why }),
        }
    }

    fn try_open(input: &BinaryInput, limits: &ReadLimits) -> Result<(Mmap, Format), OpenFailure> {
        let file = open_regular(&input.path)?;
        let file = match (&input.member, &input.wheel) {
            (Some(member), Some(wheel)) => unpack(wheel.clone(), member, limits)?,
            (Some(member), None) => unpack(wheel(&file)?, member, limits)?,
            (None, _) => file,
        };
        if file.metadata()?.len() == 0 {
            return Err(OpenFailure::Empty);
        }
        let map = map(&file)?;
        let format = Format::detect(&map).ok_or(OpenFailure::Unknown)?;
        Ok((map, format))
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// The containers and what is wrong. Images are not decompressed by this, unless they are
    /// concatenated.
    pub fn contents(&self, limits: &ReadLimits) -> FoundImages<'_> {
        host::read(&self.map, self.format, limits)
    }
}

#[expect(
    unsafe_code,
    reason = "a map is the only way to read a library of gigabytes lazily; the bytes are only read, \
              and a process that changes the file meanwhile changes numbers, not memory of ours. One \
              that truncates it ends this process with SIGBUS, as it does for every reader of maps"
)]
pub(crate) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: see above; no reference into the map outlives it.
    unsafe { Mmap::map(file) }
}

fn open_regular(path: &Path) -> Result<File, OpenFailure> {
    // Before opening: a pipe would block.
    if !path.metadata()?.is_file() {
        return Err(OpenFailure::NotRegular);
    }
    Ok(File::open(path)?)
}

fn unpack(mut wheel: Wheel, member: &str, limits: &ReadLimits) -> Result<File, OpenFailure> {
    let mut packed = wheel.by_name(member)?;
    let size = packed.size();
    let unpacked = unpack_member(&mut packed, limits.member)?;
    unpacked.ok_or(OpenFailure::TooLarge(size, limits.member))
}

/// A wheel whose directory has been read; a copy shares it, and reads at a place of its own.
pub(crate) type Wheel = zip::ZipArchive<io::Cursor<SharedMap>>;

/// A mapped file that several readers have.
#[derive(Debug, Clone)]
pub(crate) struct SharedMap(Arc<Mmap>);

impl AsRef<[u8]> for SharedMap {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Reads the directory of a wheel.
///
/// # Errors It is damaged, or its members overlap. In that case a few bytes would be unpacked again and again.
pub(crate) fn wheel(file: &File) -> Result<Wheel, OpenFailure> {
    let map = SharedMap(Arc::new(map(file)?));
    let mut wheel = zip::ZipArchive::new(io::Cursor::new(map))?;
    work::count(wheel.len());
    match wheel.has_overlapping_entries()? {
        true => Err(OpenFailure::Overlap),
        false => Ok(wheel),
    }
}

/// Unpacks a member of a wheel to a temporary file without a name; `None` if it has more than `limit` bytes, whatever it
/// states.
pub(crate) fn unpack_member(packed: &mut impl Read, limit: u64) -> io::Result<Option<File>> {
    let mut unpacked = tempfile::tempfile()?;
    let written = io::copy(&mut packed.take(limit.saturating_add(1)), &mut unpacked)?;
    if written > limit {
        return Ok(None);
    }
    unpacked.rewind()?;
    Ok(Some(unpacked))
}

/// The files meant by `paths`: files as they are, of folders and wheels everything that can hold a
/// fat binary, in the order of their names.
pub fn find(paths: &[PathBuf]) -> (Vec<BinaryInput>, Vec<FatbinError>) {
    let mut inputs = Vec::new();
    let mut errors = Vec::new();
    for path in paths {
        let mut here = Vec::new();
        collect_inputs(path, 0, &mut here, &mut errors);
        here.sort();
        inputs.append(&mut here);
    }
    (inputs, errors)
}

/// At depth 0 are the paths that the user named. No file among them is ignored silently.
fn collect_inputs(
    path: &Path,
    depth: usize,
    inputs: &mut Vec<BinaryInput>,
    errors: &mut Vec<FatbinError>,
) {
    let input = BinaryInput::file(path);
    let fail = |why| FatbinError {
        input: input.clone(),
        why,
    };
    let found = match look_into(path, depth) {
        Ok(found) => found,
        Err(why) => return errors.push(fail(why)),
    };
    match found {
        PathContents::Nothing => {}
        PathContents::File => inputs.push(input),
        PathContents::Members(members, wheel) => inputs.extend(members.into_iter().map(|member| {
            let wheel = Some(wheel.clone());
            BinaryInput {
                wheel,
                ..BinaryInput::member(path, member)
            }
        })),
        PathContents::Folder(entries) => {
            for entry in entries {
                collect_inputs(&entry, depth + 1, inputs, errors);
            }
        }
    }
}

enum PathContents {
    Nothing,
    File,
    Members(Vec<String>, Wheel),
    Folder(Vec<PathBuf>),
}

fn look_into(path: &Path, depth: usize) -> Result<PathContents, OpenFailure> {
    let metadata = match depth {
        0 => path.metadata()?,
        // A library's second and third name are links to it; it is listed once.
        _ => path.symlink_metadata()?,
    };
    if metadata.is_dir() {
        if depth > DEEPEST {
            return Err(OpenFailure::NotRegular);
        }
        let entries: io::Result<Vec<_>> = path.read_dir()?.map(|e| Ok(e?.path())).collect();
        return Ok(PathContents::Folder(entries?));
    }
    if !metadata.is_file() {
        return match depth {
            0 => Err(OpenFailure::NotRegular),
            _ => Ok(PathContents::Nothing),
        };
    }
    let mut file = File::open(path)?;
    match Format::detect(&head(&mut file)?) {
        Some(Format::Wheel) => {
            let mut wheel = wheel(&file)?;
            Ok(PathContents::Members(members(&mut wheel)?, wheel))
        }
        Some(_) => Ok(PathContents::File),
        None if depth > 0 => Ok(PathContents::Nothing),
        None if metadata.len() == 0 => Err(OpenFailure::Empty),
        None => Err(OpenFailure::Unknown),
    }
}

pub(crate) fn head(file: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    file.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// The members of a wheel that can hold a fat binary, by their first bytes.
fn members(wheel: &mut Wheel) -> Result<Vec<String>, OpenFailure> {
    let mut members = Vec::new();
    for index in 0..wheel.len() {
        let mut member = wheel.by_index(index)?;
        if !member.is_file() {
            continue;
        }
        if Format::detect(&head(&mut member)?).is_some_and(|format| format != Format::Wheel) {
            members.push(member.name()?.into_owned());
        }
    }
    Ok(members)
}
