//! The context of a thread that the host application supplies, such as its title and links.

use countersign_domain::threads::thread::Context;
use url::Url;

use crate::error::{Error, Result};

/// Short, because reviewers also read it on a phone.
const CONTEXT_CHARS_MAX: usize = 500;
const LINKS_MAX: usize = 10;

/// Checks the length and the links of a context.
pub(super) fn check(context: &Context) -> Result<()> {
    let long = |text: &Option<String>| text.as_ref().is_some_and(|it| it.chars().count() > CONTEXT_CHARS_MAX);
    let links =
        context.links.len() > LINKS_MAX || context.links.iter().any(|it| it.chars().count() > CONTEXT_CHARS_MAX);
    if long(&context.title) || long(&context.on_behalf_of) || links {
        let detail = format!(
            "the context is too long. Use at most {CONTEXT_CHARS_MAX} characters for each text and {LINKS_MAX} links"
        );
        return Err(Error::invalid("/context", detail));
    }
    match context.links.iter().position(|it| !is_web_address(it)) {
        Some(at) => {
            Err(Error::invalid(&format!("/context/links/{at}"), "the link is not a web page. Use an http or https URL"))
        }
        None => Ok(()),
    }
}

/// Returns whether a link is an http or https address. Other schemes could run scripts or open files on the
/// reviewer's computer.
fn is_web_address(link: &str) -> bool {
    let url = Url::parse(link);
    url.is_ok_and(|it| matches!(it.scheme(), "http" | "https") && it.has_host())
        // The URL parser removes these characters, and a page would show another link than the one that was
        // checked.
        && !link.chars().any(|it| it.is_control() || it.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_web_addresses() {
        for link in ["https://desk.example/17", "http://localhost:8080/a?b#c", "HTTPS://desk.example"] {
            assert!(is_web_address(link), "{link}");
        }
        for link in [
            "javascript:alert(1)",
            "JaVaScRiPt://desk.example/%0aalert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "vscode://x/y",
            "//desk.example",
            "/17",
            "desk.example/17",
            "https://",
            "java\tscript:alert(1)",
            " https://desk.example",
            "https://desk.example/\n",
            "",
        ] {
            assert!(!is_web_address(link), "{link:?}");
        }
    }
}
