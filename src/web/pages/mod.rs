//! HTML, one file per screen.

pub mod view;
