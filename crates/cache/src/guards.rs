//! Switches guards off, for tests of whether a missing guard would be noticed. Without debug assertions nothing can be
//! switched.

#[cfg(debug_assertions)]
static OFF: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();

/// Switches these guards off, names with commas between them, for as long as this process lives. The first call counts.
#[cfg(debug_assertions)]
pub fn switch_off(guards: &str) {
    OFF.get_or_init(|| guards.split(',').map(str::to_owned).collect());
}

/// The guards that are switched off, for another program of ours: names with commas between them.
pub fn switched_off() -> String {
    #[cfg(debug_assertions)]
    let off = OFF.get().map(|off| off.join(",")).unwrap_or_default();
    #[cfg(not(debug_assertions))]
    let off = String::new();
    off
}

/// Whether the guard of this name is switched off. `cargo xtask soak --without` has a table of what then goes wrong.
#[cfg(debug_assertions)]
pub fn is_off(guard: &str) -> bool {
    OFF.get()
        .is_some_and(|off| off.iter().any(|name| name == guard))
}

/// Never.
#[cfg(not(debug_assertions))]
#[inline]
pub const fn is_off(_guard: &str) -> bool {
    false
}
