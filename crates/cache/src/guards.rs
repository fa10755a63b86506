//! Switches a guard off, for a test that asks whether anybody would notice: `WARPCC_TEST_UNSOUND=guard,…`.
//!
//! Without debug assertions there is nothing to switch: [`is_off`] is `false`, and the variable is not read.

/// Whether the guard of this name is switched off. `cargo xtask soak --without` has a table of what then goes wrong.
#[cfg(debug_assertions)]
pub fn is_off(guard: &str) -> bool {
    use std::sync::LazyLock;
    static OFF: LazyLock<String> =
        LazyLock::new(|| std::env::var("WARPCC_TEST_UNSOUND").unwrap_or_default());
    !OFF.is_empty() && OFF.split(',').any(|name| name == guard)
}

/// Never.
#[cfg(not(debug_assertions))]
#[inline]
pub const fn is_off(_guard: &str) -> bool {
    false
}
