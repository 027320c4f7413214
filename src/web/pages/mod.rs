//! HTML, one file per screen.

pub mod view;

use actix_web::web::ServiceConfig;

/// Every screen's route. Who may see which is said in `roles`.
pub fn routes(_: &mut ServiceConfig) {}
