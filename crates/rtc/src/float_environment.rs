//! How a thread computes with floating-point numbers: rounding, denormal numbers, exceptions.
//!
//! Compilers compute constants with the host's instructions, so their results depend on this (`1.0f / 3.0f` and `1e-310 * 3.0` with
//! NVRTC 12.0 to 13.5). A program may have changed it, such as with `torch.set_flush_denormal(True)`, and new threads inherit it. But the
//! result of a compilation is for every process. So compilers run as in a new process.
#![expect(
    unsafe_code,
    reason = "only instructions of the processor read and write these registers"
)]

use std::marker::PhantomData;

/// The control registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Registers {
    /// x86: `MXCSR` without the flags of what has happened. Arm: `FPCR`.
    control: u64,
    /// x86: the control word of the x87 unit, which long double uses.
    x87: u16,
}

/// While this lives, the thread computes as in a new process.
pub(crate) struct AsInANewProcess {
    before: Registers,
    /// It belongs to its thread.
    _thread: PhantomData<*const ()>,
}

impl AsInANewProcess {
    pub(crate) fn begin() -> Self {
        let before = read();
        write(USUAL);
        Self {
            before,
            _thread: PhantomData,
        }
    }
}

impl Drop for AsInANewProcess {
    fn drop(&mut self) {
        write(self.before);
    }
}

/// Whether this thread computes as in a new process.
pub(crate) fn is_usual() -> bool {
    read() == USUAL
}

#[cfg(target_arch = "x86_64")]
mod registers {
    use super::Registers;
    use std::arch::asm;

    /// What Linux gives a new process.
    pub(super) const USUAL: Registers = Registers {
        control: 0x1f80,
        x87: 0x37f,
    };
    /// The bits of `MXCSR` that say what has happened.
    const FLAGS: u32 = 0x3f;

    pub(super) fn read() -> Registers {
        let (mut mxcsr, mut x87) = (0_u32, 0_u16);
        // SAFETY: both store a register at a live place of its size.
        unsafe {
            asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack, preserves_flags));
            asm!("fnstcw [{}]", in(reg) &raw mut x87, options(nostack, preserves_flags));
        }
        Registers {
            control: u64::from(mxcsr & !FLAGS),
            x87,
        }
    }

    pub(super) fn write(registers: Registers) {
        // The value was read from 32 bits, or is the constant.
        let (mxcsr, x87) = (registers.control as u32, registers.x87);
        // SAFETY: these are values that the registers had, or have in a new process: no reserved bit is set. Rust expects the
        // usual ones, which are set here, or those that the caller's thread had before are set again.
        unsafe {
            asm!("ldmxcsr [{}]", in(reg) &raw const mxcsr, options(nostack, readonly, preserves_flags));
            // What has happened would be an exception now, if the new word asks for exceptions.
            asm!("fnclex", "fldcw [{}]", in(reg) &raw const x87, options(nostack, readonly, preserves_flags));
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod registers {
    use super::Registers;
    use std::arch::asm;

    /// What Linux gives a new process.
    pub(super) const USUAL: Registers = Registers { control: 0, x87: 0 };

    pub(super) fn read() -> Registers {
        let control: u64;
        // SAFETY: every process may read it.
        unsafe { asm!("mrs {}, fpcr", out(reg) control, options(nomem, nostack, preserves_flags)) };
        Registers { control, x87: 0 }
    }

    pub(super) fn write(registers: Registers) {
        // SAFETY: it is a value that the register had, or has in a new process.
        unsafe {
            asm!("msr fpcr, {}", in(reg) registers.control, options(nostack, preserves_flags));
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod registers {
    use super::Registers;

    pub(super) const USUAL: Registers = Registers { control: 0, x87: 0 };

    pub(super) fn read() -> Registers {
        USUAL
    }

    pub(super) fn write(_: Registers) {}
}

use registers::{USUAL, read, write};

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Runs `work` on a thread that takes denormal numbers for zero and rounds upwards.
    pub(crate) fn on_an_unusual_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let mut unusual = USUAL;
                unusual.control |= match cfg!(target_arch = "x86_64") {
                    // Flush to zero, denormals are zeros, and up.
                    true => 0x8040 | 0x4000,
                    false => 1 << 24 | 1 << 22,
                };
                write(unusual);
                let result = work();
                assert_eq!(read(), unusual, "it is as it was");
                write(USUAL);
                result
            });
            thread.join().expect("it does not panic")
        })
    }

    #[test]
    fn it_is_usual_meanwhile_and_as_before_afterwards() {
        assert!(is_usual());
        on_an_unusual_thread(|| {
            assert!(!is_usual());
            let usual = AsInANewProcess::begin();
            assert!(is_usual());
            drop(usual);
            assert!(!is_usual());
        });
    }

    /// Such as after `feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW)`: a signal would end this process.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_compiler_may_divide_by_zero_where_the_program_may_not() {
        use crate::float_environment::registers::{USUAL, read, write};
        const DIVISION_OVERFLOW_INVALID: u16 = 0b1101;
        let source = "__global__ void k(float* x, double* y) {\
            x[0] = 1.0f / 0.0f; x[1] = 3e38f * 3e38f; y[0] = 0.0 / 0.0; y[1] = exp(1e9); y[2] = log(0.0); y[3] = sqrt(-1.0); }";
        for nvrtc in warpcc_testkit::Nvrtc::all() {
            let compiler = crate::Compiler::open(&nvrtc.folder).expect("NVRTC");
            let target = "compute_80".parse().expect("a target");
            let request = crate::CompileRequest::new("k", source, target);
            std::thread::scope(|scope| {
                let thread = scope.spawn(|| {
                    let mut traps = USUAL;
                    traps.control &= !u64::from(DIVISION_OVERFLOW_INVALID << 7);
                    traps.x87 &= !DIVISION_OVERFLOW_INVALID;
                    write(traps);
                    let made = compiler.compile(&request, &crate::CallLimits::default());
                    let usual = AsInANewProcess::begin();
                    // SAFETY: it divides by zero in the x87 unit, which then has no number in its stack as before.
                    unsafe { std::arch::asm!("fld1", "fldz", "fdivp", "fstp st(0)") };
                    drop(usual);
                    // SAFETY: it only waits for an exception.
                    unsafe { std::arch::asm!("fwait") };
                    assert_eq!(read(), traps);
                    write(USUAL);
                    made
                });
                let made = thread.join().expect("it does not panic");
                assert!(made.is_ok(), "NVRTC {}", nvrtc.version);
            });
        }
    }

    #[test]
    fn what_an_unusual_thread_compiles_itself_is_not_kept() {
        use crate::{CacheSettings, Compiled, Compiler, Found, KernelCache, Product};
        let folder = tempfile::tempdir().expect("a folder");
        let compiler = Compiler::open(&warpcc_testkit::Nvrtc::newest().folder).expect("NVRTC");
        let cache = KernelCache::with(compiler, CacheSettings::in_folder(folder.path()), None);
        let get = || {
            let mut product = Product::new("p");
            product.part("part", b"a");
            let make = || Ok(Compiled::of_product(b"1", Vec::new(), String::new()));
            let image = cache.get_product(&product, &crate::CallLimits::default(), make);
            image.expect("made or found").found
        };
        for _ in 0..2 {
            assert_eq!(on_an_unusual_thread(get), Found::Made);
        }
        let remarks = cache.remarks();
        assert!(
            remarks.len() == 1 && remarks[0].contains("rounds unusually"),
            "{remarks:?}"
        );
        assert_eq!([get(), get()], [Found::Made, Found::Memory]);
    }

    #[test]
    fn a_compilers_constants_do_not_depend_on_the_thread() {
        use crate::{CallLimits, CompileRequest, Compiler};
        let source =
            "__global__ void k(float* x, double* y) { x[0] = 1.0f / 3.0f; y[0] = 1e-310 * 3.0; }";
        for nvrtc in warpcc_testkit::Nvrtc::all() {
            let compiler = Compiler::open(&nvrtc.folder).expect("NVRTC");
            let request = CompileRequest::new("k", source, "compute_80".parse().expect("a target"));
            let compile = || compiler.compile(&request, &CallLimits::default());
            let expected = compile().expect("it compiles");
            let made = on_an_unusual_thread(compile).expect("it compiles");
            assert_eq!(made.image, expected.image, "NVRTC {}", nvrtc.version);
        }
    }
}
