//! Reviews: votes, comments, edits, deadlines, and what a reviewer sees.

pub mod comment;
pub mod decision;
pub mod details;
pub mod edit;
pub mod eligible_voters;
pub mod escalate;
pub mod extend;
pub mod rejudge;
pub(crate) mod rejudge_cache;
pub mod reveal;
pub(crate) mod summary;
pub mod vote;
pub mod vote_evidence;
pub(crate) mod voter_roll;
pub mod withdraw;
