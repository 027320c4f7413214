//! The log, and one event of it.

use askama::Template;

use crate::web::pages::shared::layout::{DigestText, PageLayout, TimestampView};
use crate::web::pages::shared::safe_text::{SafeJson, SafeLine};
use crate::web::pages::threads::list_view::{FilterState, SelectOption};

/// `GET /log`.
#[derive(Template, Clone, Debug)]
#[template(path = "log.html")]
pub struct LogPage {
    pub shell: PageLayout,
    /// The kinds to choose from.
    pub kinds: Vec<SelectOption>,
    /// The flows to choose from.
    pub flows: Vec<SelectOption>,
    pub thread: SafeLine,
    pub who: SafeLine,
    pub since: SafeLine,
    pub until: SafeLine,
    /// Whether anything was asked for.
    pub filter: FilterState,
    /// Why nothing was looked for.
    pub problem: Option<String>,
    pub rows: Vec<LogEventRow>,
    /// How many were looked at, where more might be found further on.
    pub looked: Option<u64>,
    /// The next page, if there is one.
    pub more_url: Option<String>,
    /// Where all of it is to be had, for whom it is.
    pub download_url: Option<String>,
}

#[derive(Clone, Debug)]
pub struct LogEventRow {
    pub url: String,
    pub words: SafeLine,
    pub name: SafeLine,
    pub index: Option<u64>,
    pub flow: Option<SafeLine>,
    /// Its thread, and that one's page.
    pub thread: Option<(SafeLine, String)>,
    /// Who did it, or to whom it was done.
    pub who: Vec<SafeLine>,
    pub at: TimestampView,
}

/// `GET /log/{event}`.
#[derive(Template, Clone, Debug)]
#[template(path = "event.html")]
pub struct EventPage {
    pub shell: PageLayout,
    pub row: LogEventRow,
    /// Its number in its thread.
    pub seq: Option<u64>,
    pub id: SafeLine,
    pub hash: DigestText,
    /// The hash of the event before it in its thread.
    pub previous: Option<DigestText>,
    pub facts: Vec<EventFact>,
}

/// A member of what an event tells.
#[derive(Clone, Debug)]
pub struct EventFact {
    pub name: SafeLine,
    pub value: SafeJson,
    /// What that is called, if it is an id of something that has a name.
    pub called: Option<SafeLine>,
    pub url: Option<String>,
}
