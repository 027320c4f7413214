//! Whether the full matrix of tests runs. CONTRIBUTING.md says what it adds, and when it runs.

/// Returns true if `TEST_FULL=1` asks for the full matrix.
pub fn is_full() -> bool {
    std::env::var_os("TEST_FULL").is_some_and(|it| it == "1")
}
