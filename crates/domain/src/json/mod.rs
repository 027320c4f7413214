//! JSON with one meaning for every reader: a strict parser, one canonical form, patches, and a diff down to leaves.
//!
//! The value type is [`serde_json::Value`] with numbers normalized by [`number`], so that equal values are `==`. Any
//! text that did not come from [`canonical`] is read only by [`parse`]: `serde_json` keeps the last of two equal
//! keys, and reads `9007199254740992` in another form.

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
