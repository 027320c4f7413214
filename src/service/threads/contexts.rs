//! What a host says of a thread.

use crate::domain::thread::Context;
use crate::service::error::{Error, Result};

/// What the host says of a thread is shown on a phone.
const CONTEXT_CHARS_MAX: usize = 500;
/// Links that the host gives.
const LINKS_MAX: usize = 10;

/// Refuses what does not fit.
pub(super) fn check(context: &Context) -> Result<()> {
    let long = |text: &Option<String>| text.as_ref().is_some_and(|it| it.chars().count() > CONTEXT_CHARS_MAX);
    let links =
        context.links.len() > LINKS_MAX || context.links.iter().any(|it| it.chars().count() > CONTEXT_CHARS_MAX);
    if long(&context.title) || long(&context.on_behalf_of) || links {
        let detail = format!("at most {CONTEXT_CHARS_MAX} characters each and {LINKS_MAX} links");
        return Err(Error::invalid("/context", detail));
    }
    Ok(())
}
