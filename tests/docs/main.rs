//! What pages of docs/ say is what happens: their files are written and their commands are run.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod context;
mod episodes;
mod guard;
mod policy;

const PROGRAM: &str = env!("CARGO_BIN_EXE_countersign");

/// The fenced blocks of a page: what stands after the fence, and the text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    page.split("```").skip(1).step_by(2).map(|it| it.split_once('\n').unwrap()).collect()
}
