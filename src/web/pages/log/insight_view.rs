//! How much is asked of people, and how long they take.

use askama::Template;

use crate::web::pages::inbox::list_view::InboxTab;
use crate::web::pages::shared::layout::{PageLayout, TimestampView};
use crate::web::pages::shared::safe_text::SafeLine;
use crate::web::pages::threads::list_view::SelectOption;

/// `GET /insight`.
#[derive(Template, Clone, Debug)]
#[template(path = "insight.html")]
pub struct InsightPage {
    pub shell: PageLayout,
    /// How far back one can look.
    pub spans: Vec<InboxTab>,
    /// How far back this page looks, as the address has it.
    pub span: &'static str,
    /// The same in words: `the last 7 days`.
    pub span_words: &'static str,
    /// The flows to choose from.
    pub flows: Vec<SelectOption>,
    /// Until when the log was counted; never where nothing was.
    pub counted_until: Option<TimestampView>,
    /// Events that were not counted yet.
    pub behind: u64,
    /// Since when, where not all that happened was looked through.
    pub since: Option<TimestampView>,
    pub told: InsightContent,
}

#[derive(Clone, Debug)]
pub enum InsightContent {
    /// Nothing was asked, and nothing is open.
    Nothing,
    Figures(Box<InsightFigures>),
}

/// Everything that is drawn and listed.
#[derive(Clone, Debug)]
pub struct InsightFigures {
    /// The figures at the top, each with its name.
    pub summary: Vec<(&'static str, String)>,
    pub waiting: Chart,
    pub times: Chart,
    /// What became of proposals.
    pub outcomes: Vec<OutcomeRow>,
    pub by_flow: InsightGroups,
    pub by_reason: InsightGroups,
}

/// Bars over time. Its words stand around the picture, which stretches.
#[derive(Clone, Debug)]
pub struct Chart {
    pub id: &'static str,
    pub title: &'static str,
    /// What there is to see, in a sentence.
    pub told: String,
    /// How wide the drawing is in its own measure.
    pub width: usize,
    pub bars: Vec<Bar>,
    /// What the top of the scale means.
    pub top: String,
    pub middle: String,
    pub from: String,
    pub to: String,
    pub table: ChartTable,
}

/// What a chart is drawn from.
#[derive(Clone, Debug)]
pub struct ChartTable {
    /// What stands in its columns; the first names the row.
    pub columns: [&'static str; 4],
    pub rows: Vec<[String; 4]>,
}

#[derive(Clone, Debug)]
pub struct Bar {
    /// Where it begins, from the left.
    pub x: usize,
    /// Where its top is, from above.
    pub y: u64,
    pub height: u64,
    /// The line above it, if there is one: a path.
    pub mark: Option<String>,
    pub words: String,
}

/// What became of proposals, one way.
#[derive(Clone, Debug)]
pub struct OutcomeRow {
    pub words: &'static str,
    pub count: u64,
    /// How long its bar is, of 1000.
    pub width: u64,
}

/// Reviews by something that they have.
#[derive(Clone, Debug)]
pub struct InsightGroups {
    pub rows: Vec<InsightGroupRow>,
    pub more: usize,
    /// What the longest bar means.
    pub longest: String,
}

/// Reviews that have one thing in common.
#[derive(Clone, Debug)]
pub struct InsightGroupRow {
    /// What; those that are counted together have no name.
    pub name: Option<SafeLine>,
    /// Reviews that were opened.
    pub opened: u64,
    /// Those that people approved.
    pub approved: u64,
    /// Those that people denied.
    pub denied: u64,
    /// Those that ended otherwise.
    pub undecided: u64,
    /// How long half of the decisions took at most.
    pub median: String,
    pub p95: String,
    /// The bar of the two: how far each reaches, of 1000.
    pub bar: Option<(u64, u64)>,
}
