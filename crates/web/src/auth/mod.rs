//! Authentication: extractors, the permission table and the CSRF token.

pub mod csrf;
pub mod extractors;
pub mod permissions;
