//! Pages for episodes and imported episodes.

pub mod episode;
pub mod episode_view;
pub(crate) mod imported;
pub mod imports;
pub mod imports_view;
pub(crate) mod run_parts;
