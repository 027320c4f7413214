//! The embedded style sheets, scripts and images, under names that change with their content.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use actix_web::http::header;
use actix_web::{HttpResponse, web};
use rust_embed::Embed;

#[derive(Embed)]
#[folder = "../../static/"]
struct Static;

/// The number of hex digits of the hash in a URL. 64 bits are enough to distinguish versions of one file.
const HASH_DIGITS: usize = 16;

/// One year, the usual maximum. It is safe because the URL changes with the content.
const CACHE_CONTROL: &str = "public, max-age=31536000, immutable";

pub const PREFIX: &str = "/assets/";

/// Maps a name in `static/` to its path under [`PREFIX`].
static HASHED: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let hashed = |name: String| {
        let hash = Static::get(&name)?.metadata.sha256_hash();
        Some((name.clone(), hashed_name(&name, &hash)))
    };
    Static::iter().map(std::borrow::Cow::into_owned).filter_map(hashed).collect()
});

fn hashed_name(name: &str, hash: &[u8]) -> String {
    let mut digits = String::new();
    // A byte is two hexadecimal digits.
    for byte in &hash[..HASH_DIGITS / 2] {
        write!(digits, "{byte:02x}").expect("writing to a String does not fail");
    }
    match name.rsplit_once('.') {
        Some((stem, extension)) => format!("{stem}.{digits}.{extension}"),
        None => format!("{name}.{digits}"),
    }
}

/// Returns the URL of a file in `static/`. An unknown name gives a URL that returns 404, because a page without style
/// is better than none. A test checks the names in the templates.
pub fn asset(name: &str) -> String {
    match HASHED.get(name) {
        Some(hashed) => format!("{PREFIX}{hashed}"),
        None => format!("{PREFIX}{name}"),
    }
}

/// Returns true if `static/` has a file of this name.
pub fn exists(name: &str) -> bool {
    HASHED.contains_key(name)
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// Serves `GET /assets/{name:.+}`. Only names with the current hash exist, so the response can be cached permanently.
pub async fn serve(path: web::Path<String>) -> HttpResponse {
    let asked = path.into_inner();
    // Only the hashed name is served, because the browser may keep the response for a year.
    let found = HASHED.iter().find(|(_, hashed)| **hashed == asked);
    let Some((name, file)) = found.and_then(|(name, _)| Some((name, Static::get(name)?))) else {
        return HttpResponse::NotFound().content_type("text/plain; charset=utf-8").body("No such file.\n");
    };
    HttpResponse::Ok()
        .content_type(content_type(name))
        .insert_header((header::CACHE_CONTROL, CACHE_CONTROL))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .body(file.data.into_owned())
}

#[cfg(test)]
mod tests;
