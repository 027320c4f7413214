//! JSON that two parties can agree on to the byte: read strictly, written in one form, patched and
//! compared down to leaves.
//!
//! The value type is [`serde_json::Value`] with its numbers normalised by [`number`], so that equal
//! values are `==`. Text that did not come from [`canonical`] is only ever read by [`parse`]:
//! `serde_json` keeps the last of two equal keys, and reads `9007199254740992` as another form than ours.

pub mod canonical;
pub mod diff;
pub mod number;
pub mod parse;
pub mod patch;
pub mod pattern;
pub mod pointer;
pub mod size;
pub mod state_delta;

#[cfg(test)]
mod samples;
