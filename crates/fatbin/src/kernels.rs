//! The functions of an image, and the resources of a GPU that each kernel uses.
//!
//! Where each number stands was found by comparing with `cuobjdump -res-usage` on 34,245 functions
//! of CUDA 11.7 to 13.5.

use std::collections::{HashMap, HashSet};

use object::elf::{STT_FUNC, Sym64};
use object::read::elf::{SectionHeader, Sym};
use object::{LittleEndian, SymbolIndex};
use serde::Serialize;

use crate::attributes;
use crate::bytes::{u16_at, u32_at, u64_at};
use crate::cubin::Cubin;
use crate::error::Flaw;
use crate::ptx;
use crate::work;

const E: LittleEndian = LittleEndian;

type Symbol = Sym64<LittleEndian>;
/// In `st_other`: the function is started from the host.
const ENTRY: u8 = 0x10;
/// `.nv.info`: registers of a function; symbol, count.
const REGISTERS: u8 = 0x2f;
/// `.nv.info`: stack of a function with what it calls; symbol, bytes.
const STACK: u8 = 0x12;
/// `.nv.info`: a function's own frame; symbol, bytes.
const FRAME: u8 = 0x11;
/// `.nv.info.NAME`: bytes of parameters.
const PARAMETERS: u8 = 0x19;
/// `.nv.info.NAME`: most threads of a block (`__launch_bounds__`); three numbers.
const MAX_THREADS: u8 = 0x05;
/// From here on an instruction has 16 bytes and its opcode in the lowest 12 bits.
const WIDE_INSTRUCTIONS: u32 = 70;
/// Opcodes, as nvdisasm names the instructions. The second store takes its address from a uniform
/// register, from sm_100 on.
const LDL: &[u64] = &[0x983];
const STL: &[u64] = &[0x387, 0x987];

/// A kernel, or a function that kernels call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageFunction {
    /// As in the symbol table, mangled.
    pub name: String,
    /// Whether it is a kernel.
    pub is_kernel: bool,
    /// Its resources, known for machine code only; `None` for PTX.
    #[serde(flatten)]
    pub usage: Option<Usage>,
}

/// The resources of a function, in bytes unless said otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Usage {
    /// Registers of a thread (a number).
    pub registers: Option<u32>,
    /// Stack of a thread, with what it calls. Absent in relocatable code: a link decides it.
    pub stack: Option<u32>,
    /// Stack of a thread for the function itself: local arrays and spilled registers.
    pub frame: Option<u32>,
    /// Static shared memory of a block; for sm_90 and newer with the 1024 that are reserved as soon
    /// as a kernel has any.
    pub shared: u64,
    /// Local memory besides the stack; zero in modern code.
    pub local: u64,
    /// Constant memory of its own, by bank; bank 0 has the parameters.
    pub constants: Vec<(u8, u64)>,
    /// Parameters.
    pub parameters: Option<u16>,
    /// Machine code.
    pub code: u64,
    /// Most threads of a block (a number), where the source bounds it.
    pub max_threads: Option<u32>,
    /// Loads from local memory in the code (a number of instructions): spilled registers, local
    /// arrays and calls. `None` where the instruction set is not known.
    pub local_loads: Option<u32>,
    /// The number of stores to local memory in the code.
    pub local_stores: Option<u32>,
}

impl Usage {
    /// All banks together, in bytes.
    pub fn constant_bytes(&self) -> u64 {
        let sizes = self.constants.iter().map(|(_, bytes)| *bytes);
        sizes.fold(0, u64::saturating_add)
    }
}

/// The functions of a PTX text: its kernels.
pub fn of_ptx(text: &[u8]) -> Vec<ImageFunction> {
    ptx::entries(text)
        .map(|name| ImageFunction {
            name: name.to_owned(),
            is_kernel: true,
            usage: None,
        })
        .collect()
}

/// The functions of a cubin that have code of their own, in the order of its symbols.
///
/// # Errors
/// The names in it overlap.
pub fn of_cubin(cubin: &Cubin<'_>) -> Result<Vec<ImageFunction>, Flaw> {
    let sections = Sections::new(cubin);
    let by_symbol = BySymbol::read(cubin.section(".nv.info").unwrap_or_default());
    let arch = cubin.arch().number;
    let mut functions = Vec::new();
    for (index, symbol, name) in own_functions(cubin)? {
        let number = u32::try_from(index.0).unwrap_or(u32::MAX);
        let mut usage = sections.usage(name, arch);
        usage.registers = by_symbol.get(number, REGISTERS);
        usage.stack = by_symbol.get(number, STACK);
        usage.frame = by_symbol.get(number, FRAME);
        usage.code = symbol.st_size(E);
        functions.push(ImageFunction {
            name: String::from_utf8_lossy(name).into_owned(),
            is_kernel: is_entry(symbol),
            usage: Some(usage),
        });
    }
    Ok(functions)
}

/// A function's number among the symbols, its symbol, and its name.
pub(crate) type OwnFunction<'d> = (SymbolIndex, &'d Symbol, &'d [u8]);

/// The functions that have a section of their own. A function that is in its caller's section is a part of the caller.
/// Of several symbols with one name the first.
pub(crate) fn own_functions<'d>(cubin: &Cubin<'d>) -> Result<Vec<OwnFunction<'d>>, Flaw> {
    let mut functions = Vec::new();
    let mut seen = HashSet::new();
    for (index, symbol) in cubin.symbols.enumerate() {
        work::count(1);
        if symbol.st_type() != STT_FUNC {
            continue;
        }
        let Some(name) = cubin.symbol_name(symbol)? else {
            continue;
        };
        let section = cubin.symbols.symbol_section(E, symbol, index);
        let section = section.ok().flatten();
        let own = section.and_then(|section| cubin.section_name(section)?.strip_prefix(b".text."));
        if own == Some(name) && seen.insert(name) {
            functions.push((index, symbol, name));
        }
    }
    Ok(functions)
}

/// Whether the host starts a function with this symbol.
pub(crate) fn is_entry(symbol: &Symbol) -> bool {
    symbol.st_other().0 & ENTRY != 0
}

fn instructions(code: &[u8]) -> impl Iterator<Item = u64> + '_ {
    code.chunks_exact(16)
        .filter_map(|instruction| Some(u64_at(instruction, 0)? & 0xfff))
}

/// The values of `.nv.info` that name a symbol.
struct BySymbol(HashMap<(u32, u8), u32>);

impl BySymbol {
    fn read(info: &[u8]) -> Self {
        let values = attributes::each(info)
            .filter(|a| [REGISTERS, STACK, FRAME].contains(&a.code))
            .filter_map(|a| Some(((u32_at(a.value, 0)?, a.code), u32_at(a.value, 4)?)));
        Self(values.collect())
    }

    fn get(&self, symbol: u32, code: u8) -> Option<u32> {
        self.0.get(&(symbol, code)).copied()
    }
}

/// The sections by name: a cubin of a large library has thousands.
struct Sections<'d> {
    by_name: HashMap<&'d [u8], (u64, &'d [u8])>,
    /// Banks for which there are sections of single functions.
    banks: Vec<u8>,
}

impl<'d> Sections<'d> {
    fn new(cubin: &Cubin<'d>) -> Self {
        let mut by_name = HashMap::new();
        let mut banks = Vec::new();
        for (name, section) in cubin.named_sections() {
            let data = section.data(E, cubin.data).unwrap_or_default();
            by_name.entry(name).or_insert((section.sh_size(E), data));
            if let Some(bank) = bank(name)
                && !banks.contains(&bank)
            {
                banks.push(bank);
            }
        }
        banks.sort_unstable();
        Self { by_name, banks }
    }

    fn find(&self, prefix: &[u8], function: &[u8]) -> Option<&(u64, &'d [u8])> {
        self.by_name.get([prefix, function].concat().as_slice())
    }

    fn size(&self, prefix: &[u8], function: &[u8]) -> u64 {
        self.find(prefix, function).map_or(0, |(size, _)| *size)
    }

    fn data(&self, prefix: &[u8], function: &[u8]) -> &'d [u8] {
        self.find(prefix, function).map_or(&[], |(_, data)| data)
    }

    /// The resources in a function's sections, without those in its symbols.
    fn usage(&self, function: &[u8], arch: u32) -> Usage {
        let constants = self.banks.iter().map(|bank| {
            let prefix = format!(".nv.constant{bank}.");
            (*bank, self.size(prefix.as_bytes(), function))
        });
        let mut usage = Usage {
            shared: self.size(b".nv.shared.", function),
            local: self.size(b".nv.local.", function),
            constants: constants.filter(|(_, size)| *size > 0).collect(),
            ..Usage::default()
        };
        let info = self.data(b".nv.info.", function);
        work::count(info.len());
        for attribute in attributes::each(info) {
            match attribute.code {
                PARAMETERS => usage.parameters = u16_at(attribute.value, 0),
                MAX_THREADS => usage.max_threads = product(attribute.value),
                _ => {}
            }
        }
        if arch >= WIDE_INSTRUCTIONS {
            let code = self.data(b".text.", function);
            work::count(2 * code.len());
            let count = |of: &[u64]| instructions(code).filter(|o| of.contains(o)).count();
            usage.local_loads = u32::try_from(count(LDL)).ok();
            usage.local_stores = u32::try_from(count(STL)).ok();
        }
        usage
    }
}

fn product(value: &[u8]) -> Option<u32> {
    let [x, y, z] = [0, 4, 8].map(|at| u32_at(value, at));
    x?.checked_mul(y?)?.checked_mul(z?)
}

/// The bank of `.nv.constant3.NAME`.
fn bank(section: &[u8]) -> Option<u8> {
    let rest = section.strip_prefix(b".nv.constant")?;
    let dot = rest.iter().position(|b| *b == b'.')?;
    std::str::from_utf8(&rest[..dot]).ok()?.parse().ok()
}
