//! Pages of docs/ are run as tests: the tests write their files and run their commands.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod context;
mod episodes;
mod guard;
mod policy;

const PROGRAM: &str = env!("CARGO_BIN_EXE_countersign");

/// Returns the fenced blocks of a page: the text after the fence, and the content.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    page.split("```").skip(1).step_by(2).map(|it| it.split_once('\n').unwrap()).collect()
}
