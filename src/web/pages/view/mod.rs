//! What each screen shows, already in words: plain structs that the templates are filled from.
//!
//! Nothing here knows a service or a store. Whatever an agent, a host or another person wrote
//! arrives as a [`text`] type, which can only be printed inert; a `String` or a number is the
//! gateway's own word.

pub mod account;
pub mod amendment;
pub mod asked;
pub mod compare;
pub mod confirm;
pub mod delegations;
pub mod discussion;
pub mod edit;
pub mod emergency;
pub mod endpoints;
pub mod episode;
pub mod error;
pub mod facts;
pub mod headline;
pub mod imports;
pub mod inbox;
pub mod insight;
pub mod interrupt;
pub mod log;
pub mod nav;
pub mod opening;
pub mod passkeys;
pub mod people;
pub mod places;
pub mod policies;
pub mod receipt;
pub mod reference;
pub mod rejections;
pub mod replays;
pub mod reveal;
pub mod review;
pub mod several;
pub mod shell;
pub mod sign_in;
pub mod stages;
pub mod text;
pub mod thread;
pub mod threads;
pub mod verifier;
pub mod version;
pub mod what_if;

#[cfg(test)]
mod tests;
