//! Archives old versions of threads as their policies require: first into a file, then out of the database. Every
//! change depends on the policy and the thread as they were read.

mod erase;
pub mod move_versions;
pub mod openings;
pub mod restore;
mod segments;
