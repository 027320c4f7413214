//! View of the Insight page.

use askama::Template;

use crate::pages::inbox::list_view::InboxTab;
use crate::pages::shared::layout::{PageLayout, TimestampView};
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::threads::list_view::SelectOption;

/// `GET /insight`.
#[derive(Template, Clone, Debug)]
#[template(path = "insight.html")]
pub struct InsightPage {
    pub shell: PageLayout,
    pub spans: Vec<InboxTab>,
    /// Value of `?span=`.
    pub span: &'static str,
    /// The span in a sentence: `the last 7 days`.
    pub span_words: &'static str,
    pub flows: Vec<SelectOption>,
    /// Time of the last counted event. `None` if no event was counted.
    pub counted_until: Option<TimestampView>,
    /// Number of events that are not counted yet.
    pub behind: u64,
    /// Start of the scanned events, if the page does not cover the whole span.
    pub since: Option<TimestampView>,
    pub told: InsightContent,
}

#[derive(Clone, Debug)]
pub enum InsightContent {
    /// No proposals in the span and no open reviews.
    Nothing,
    Figures(Box<InsightFigures>),
}

#[derive(Clone, Debug)]
pub struct InsightFigures {
    /// Labels and values of the figures at the top.
    pub summary: Vec<(&'static str, String)>,
    pub waiting: Chart,
    pub times: Chart,
    /// Proposals by outcome.
    pub outcomes: Vec<OutcomeRow>,
    pub by_flow: InsightGroups,
    pub by_reason: InsightGroups,
}

/// Bar chart over time. Labels are outside of the drawing, because the drawing stretches.
#[derive(Clone, Debug)]
pub struct Chart {
    pub id: &'static str,
    pub title: &'static str,
    /// The chart in a sentence, for screen readers and below the drawing.
    pub told: String,
    /// Width of the drawing in user units.
    pub width: usize,
    pub bars: Vec<Bar>,
    /// Label of the top of the scale.
    pub top: String,
    pub middle: String,
    pub from: String,
    pub to: String,
    pub table: ChartTable,
}

/// The data of a chart as a table.
#[derive(Clone, Debug)]
pub struct ChartTable {
    /// Headings. The first column names the row.
    pub columns: [&'static str; 4],
    pub rows: Vec<[String; 4]>,
}

#[derive(Clone, Debug)]
pub struct Bar {
    /// Distance from the left.
    pub x: usize,
    /// Distance of the top of the bar from the top of the drawing.
    pub y: u64,
    pub height: u64,
    /// SVG path of the line up to the 95th percentile.
    pub mark: Option<String>,
    pub words: String,
}

/// Number of proposals with one outcome.
#[derive(Clone, Debug)]
pub struct OutcomeRow {
    pub words: &'static str,
    pub count: u64,
    /// Length of the bar, of 1000.
    pub width: u64,
}

/// Reviews grouped by flow or reason.
#[derive(Clone, Debug)]
pub struct InsightGroups {
    pub rows: Vec<InsightGroupRow>,
    pub more: usize,
    /// Time that the longest bar represents.
    pub longest: String,
}

/// Reviews of one flow or one reason.
#[derive(Clone, Debug)]
pub struct InsightGroupRow {
    /// Flow or reason. `None` for all others together.
    pub name: Option<SafeLine>,
    pub opened: u64,
    pub approved: u64,
    pub denied: u64,
    /// Expired, cancelled and superseded reviews.
    pub undecided: u64,
    /// Median time to decision.
    pub median: String,
    pub p95: String,
    /// Lengths of the median and of the 95th percentile, of 1000.
    pub bar: Option<(u64, u64)>,
}
