//! Switches guards off, for tests that check whether a missing guard would be noticed. Without debug assertions this is not
//! possible.

#[cfg(debug_assertions)]
static OFF: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();

/// Switches these guards off for the rest of this process. The names have commas between them. Only the first call has an
/// effect.
#[cfg(debug_assertions)]
pub fn switch_off(guards: &str) {
    OFF.get_or_init(|| guards.split(',').map(str::to_owned).collect());
}

/// The guards that are switched off, with commas between them, for another program that the test starts.
pub fn switched_off() -> String {
    #[cfg(debug_assertions)]
    let off = OFF.get().map(|off| off.join(",")).unwrap_or_default();
    #[cfg(not(debug_assertions))]
    let off = String::new();
    off
}

/// Whether the guard of this name is switched off. `cargo xtask soak --without` has a table of what then fails.
#[cfg(debug_assertions)]
pub fn is_off(guard: &str) -> bool {
    OFF.get()
        .is_some_and(|off| off.iter().any(|name| name == guard))
}

/// Always false.
#[cfg(not(debug_assertions))]
#[inline]
pub const fn is_off(_guard: &str) -> bool {
    false
}

/// The name that switches [`options_files_are_read`] off. It is not in soak's table: results are right without it.
const OPTIONS_FILES: &str = "host-option-files";

/// Whether the words in options files of the host compiler count. Without them, what the compiler is seen to do decides, as
/// with words that it has from elsewhere; tests try that.
pub fn options_files_are_read() -> bool {
    !is_off(OPTIONS_FILES)
}
