//! Views of the audit log and of one event.

use askama::Template;

use crate::web::pages::shared::layout::{DigestText, PageLayout, TimestampView};
use crate::web::pages::shared::safe_text::{SafeJson, SafeLine};
use crate::web::pages::threads::list_view::{FilterState, SelectOption};

/// `GET /log`.
#[derive(Template, Clone, Debug)]
#[template(path = "log.html")]
pub struct LogPage {
    pub shell: PageLayout,
    pub kinds: Vec<SelectOption>,
    pub flows: Vec<SelectOption>,
    pub thread: SafeLine,
    pub who: SafeLine,
    pub since: SafeLine,
    pub until: SafeLine,
    /// Whether any filter is set.
    pub filter: FilterState,
    /// The error in the filters, if there is one.
    pub problem: Option<String>,
    pub rows: Vec<LogEventRow>,
    /// Number of scanned events, if the scan stopped before the page was full.
    pub looked: Option<u64>,
    pub more_url: Option<String>,
    /// Address of the download, for administrators and auditors.
    pub download_url: Option<String>,
}

#[derive(Clone, Debug)]
pub struct LogEventRow {
    pub url: String,
    pub words: SafeLine,
    pub name: SafeLine,
    pub index: Option<u64>,
    pub flow: Option<SafeLine>,
    /// Thread and its address.
    pub thread: Option<(SafeLine, String)>,
    /// People and tokens that the event names.
    pub who: Vec<SafeLine>,
    pub at: TimestampView,
}

/// `GET /log/{event}`.
#[derive(Template, Clone, Debug)]
#[template(path = "event.html")]
pub struct EventPage {
    pub shell: PageLayout,
    pub row: LogEventRow,
    /// Sequence number in the thread.
    pub seq: Option<u64>,
    pub id: SafeLine,
    /// Hash of the event. Only overseers get it and the next one.
    pub hash: Option<DigestText>,
    /// Hash of the previous event in the thread.
    pub previous: Option<DigestText>,
    pub facts: Vec<EventFact>,
}

/// One member of the event's data.
#[derive(Clone, Debug)]
pub struct EventFact {
    pub name: SafeLine,
    pub value: SafeJson,
    /// Name of the person or token, if the value is an id.
    pub called: Option<SafeLine>,
    pub url: Option<String>,
}
