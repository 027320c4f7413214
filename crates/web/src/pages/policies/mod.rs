//! Pages for policies, rejections and dry runs (what-if).

pub mod list;
pub mod list_view;
pub mod rejections;
pub mod rejections_view;
pub mod what_if;
pub mod what_if_view;
