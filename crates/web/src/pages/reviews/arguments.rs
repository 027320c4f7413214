//! `GET /reviews/{review}/arguments`: downloads the arguments of the tool call as JSON, redacted as on the page.

use actix_web::http::header;
use actix_web::{HttpResponse, web};
use countersign_domain::json::canonical::canonical;
use countersign_domain::primitives::sanitize;
use countersign_service::error::{Error, Result};
use countersign_service::reviews::Reviews;
use countersign_service::threads::tool_call_view::RedactedArguments;
use serde_json::Value;

use super::review;
use crate::api::transitions::view::leaf_json;
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

pub async fn download(
    reviews: Capability<Reviews>,
    visitor: Visitor,
    review: web::Path<String>,
) -> Result<HttpResponse> {
    let facts = review::facts(&reviews, &visitor, &review).await?;
    let call = facts.call.as_ref().ok_or(Error::NotFound("tool call"))?;
    let text = match &call.arguments {
        RedactedArguments::Whole { value, .. } => canonical(value),
        RedactedArguments::Parts(parts) => canonical(&Value::Array(parts.iter().map(leaf_json).collect())),
    };
    let name = format!("attachment; filename=\"arguments-{}.json\"", facts.hold.id);
    Ok(HttpResponse::Ok()
        // An agent wrote the content, so the browser must save it and never render it.
        .content_type("application/octet-stream")
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::CONTENT_DISPOSITION, name))
        // Escapes keep the value, and show a reader of the file the characters that a display would hide or obey.
        .body(sanitize::json(&text)))
}
