//! What is reached over HTTP.

pub mod assets;
pub mod pages;
