//! Pages about threads, versions and rollbacks.

pub mod compare;
pub mod compare_view;
pub mod list;
pub mod list_view;
pub mod rollback;
pub mod thread;
pub mod thread_view;
pub mod version;
pub mod version_view;
