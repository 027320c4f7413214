//! The log, and one event of it.

use askama::Template;

use crate::web::pages::shared::layout::{Hash, Moment, Shell};
use crate::web::pages::shared::safe_text::{Json, Line};
use crate::web::pages::threads::list_view::{Choice, Filter};

/// `GET /log`.
#[derive(Template, Clone, Debug)]
#[template(path = "log.html")]
pub struct LogPage {
    /// The frame.
    pub shell: Shell,
    /// The kinds to choose from.
    pub kinds: Vec<Choice>,
    /// The flows to choose from.
    pub flows: Vec<Choice>,
    /// The thread, as typed.
    pub thread: Line,
    /// Who, as typed.
    pub who: Line,
    /// From when on, as typed.
    pub since: Line,
    /// Until when, as typed.
    pub until: Line,
    /// Whether anything was asked for.
    pub filter: Filter,
    /// Why nothing was looked for.
    pub problem: Option<String>,
    /// The last first.
    pub rows: Vec<LogRow>,
    /// How many were looked at, where more might be found further on.
    pub looked: Option<u64>,
    /// The next page, if there is one.
    pub more_url: Option<String>,
    /// Where all of it is to be had, for whom it is.
    pub download_url: Option<String>,
}

/// An event.
#[derive(Clone, Debug)]
pub struct LogRow {
    /// Its page.
    pub url: String,
    /// What happened, in words.
    pub words: Line,
    /// Its name on the wire.
    pub name: Line,
    /// Its place in the log.
    pub index: Option<u64>,
    /// Its flow.
    pub flow: Option<Line>,
    /// Its thread, and that one's page.
    pub thread: Option<(Line, String)>,
    /// Who did it, or to whom it was done.
    pub who: Vec<Line>,
    /// When.
    pub at: Moment,
}

/// `GET /log/{event}`.
#[derive(Template, Clone, Debug)]
#[template(path = "event.html")]
pub struct EventPage {
    /// The frame.
    pub shell: Shell,
    /// The event.
    pub row: LogRow,
    /// Its number in its thread.
    pub seq: Option<u64>,
    /// Its id.
    pub id: Line,
    /// Its hash.
    pub hash: Hash,
    /// The hash of the event before it in its thread.
    pub previous: Option<Hash>,
    /// What it tells.
    pub facts: Vec<EventFact>,
}

/// A member of what an event tells.
#[derive(Clone, Debug)]
pub struct EventFact {
    /// Its name.
    pub name: Line,
    /// Its value.
    pub value: Json,
    /// What that is called, if it is an id of something that has a name.
    pub called: Option<Line>,
    /// Its page, if it has one.
    pub url: Option<String>,
}
