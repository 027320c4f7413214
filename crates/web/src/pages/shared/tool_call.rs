//! A tool call, as a table of its arguments and as part of a headline.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_domain::json::canonical::canonical;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::policy::{RedactedLeaf, ToolRisk};
use countersign_domain::primitives::id::ReviewId;
use countersign_service::threads::tool_call_view::{RedactedArguments, RedactedToolCall};

use super::layout::Tone;
use super::safe_text::{SafeJson, SafeLine, SafePath};
use super::value_excerpt::ValueExcerpt;

/// Arguments that a headline names.
const MENTIONED: usize = 2;

/// Rows before the others are folded.
const ROWS_SHOWN: usize = 20;

/// Characters of all names and values that a page shows of one call.
const CALL_CHARS_MAX: usize = 64 * 1024;

/// Rows that a page shows of one call.
const ROWS_MAX: usize = 1_000;

/// A tool call with its arguments.
#[derive(Clone, Debug)]
pub struct ToolCallView {
    pub name: SafeLine,
    /// The purpose of the tool, in the words of the policy.
    pub title: Option<SafeLine>,
    pub description: Option<SafeLine>,
    pub risk: Option<ToolRiskView>,
    /// The most relevant arguments.
    pub first: Vec<ToolArgumentRow>,
    /// The other arguments, which the page folds.
    pub more: Vec<ToolArgumentRow>,
    /// Whether a value is redacted.
    pub is_redacted: bool,
    /// Arguments that the page does not show at all.
    pub left_out: usize,
    /// The URL of all arguments. `None` where no review authorizes the reader.
    pub download: Option<String>,
    /// Salt of the commitment to the arguments in base64url. `None` if a value is redacted or shown in part.
    pub salt: Option<String>,
    /// The time after an approval in which the agent may run the call once, if `consume` enforces it.
    pub run_within: Option<String>,
}

/// One argument. If a value of the call is redacted, it is one value inside an argument.
#[derive(Clone, Debug)]
pub struct ToolArgumentRow {
    pub path: SafePath,
    pub label: Option<SafeLine>,
    /// Empty if the value is redacted.
    pub value: Option<SafeJson>,
    /// The parts of a value that is too long for the page.
    pub excerpt: Option<ValueExcerpt>,
    pub unit: Option<SafeLine>,
}

/// The risk of a tool, as a badge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToolRiskView(pub ToolRisk);

impl ToolRiskView {
    pub const fn words(self) -> &'static str {
        match self.0 {
            ToolRisk::Low => "low risk",
            ToolRisk::Medium => "medium risk",
            ToolRisk::High => "high risk",
        }
    }

    pub const fn tone(self) -> Tone {
        match self.0 {
            ToolRisk::Low => Tone::Plain,
            ToolRisk::Medium => Tone::Care,
            ToolRisk::High => Tone::Bad,
        }
    }
}

/// A tool call in a headline.
#[derive(Clone, Debug)]
pub struct ToolCallMention {
    pub name: SafeLine,
    pub title: Option<SafeLine>,
    pub risk: Option<ToolRiskView>,
    /// The first arguments.
    pub arguments: Vec<ToolArgumentRow>,
    pub more: usize,
}

impl ToolCallView {
    pub fn of(call: &RedactedToolCall) -> Self {
        let words = |text: Option<&str>| text.map(SafeLine::new);
        let (mut first, left_out) = shown_in_budget(rows(call));
        let is_partial = left_out > 0 || first.iter().any(|it| it.excerpt.is_some());
        let more = first.split_off(first.len().min(ROWS_SHOWN));
        Self {
            name: SafeLine::new(call.name.as_str()),
            title: words(call.description.title()),
            description: words(call.description.description()),
            risk: call.description.risk().map(ToolRiskView),
            first,
            more,
            is_redacted: matches!(call.arguments, RedactedArguments::Parts(_)),
            left_out,
            download: None,
            salt: match &call.arguments {
                // The script of the page cannot check arguments that the page does not show.
                RedactedArguments::Whole { salt, .. } if !is_partial => Some(URL_SAFE_NO_PAD.encode(salt)),
                _ => None,
            },
            run_within: None,
        }
    }

    /// Returns the call of an approval request, which runs at most once.
    #[must_use]
    pub fn once_within(self, time: Option<String>) -> Self {
        Self { run_within: time, ..self }
    }

    /// Returns the call of a review, from which its reader can download all arguments.
    #[must_use]
    pub fn of_review(self, review: &ReviewId) -> Self {
        Self { download: Some(format!("/reviews/{review}/arguments")), ..self }
    }

    pub const fn is_without_arguments(&self) -> bool {
        self.first.is_empty() && self.left_out == 0
    }

    /// Whether the page does not show every value as a whole.
    pub fn is_partial(&self) -> bool {
        self.left_out > 0 || self.first.iter().chain(&self.more).any(|it| it.excerpt.is_some())
    }
}

impl ToolCallMention {
    pub fn of(call: &RedactedToolCall) -> Self {
        let ToolCallView { name, title, risk, first: mut arguments, more, left_out, .. } = ToolCallView::of(call);
        let more = arguments.len().saturating_sub(MENTIONED) + more.len() + left_out;
        arguments.truncate(MENTIONED);
        Self { name, title, risk, arguments, more }
    }
}

/// Returns the rows of the arguments. Those that the policy shows first come first, and the others follow by name. Values
/// that are too long for the page come last, so that they do not push the others off the first screen.
fn rows(call: &RedactedToolCall) -> Vec<ToolArgumentRow> {
    let mut rows: Vec<(String, ToolArgumentRow)> = match &call.arguments {
        RedactedArguments::Whole { value, .. } => {
            let arguments = value.as_object().into_iter().flatten();
            arguments.map(|(name, value)| row(call, &Pointer::root().child(name), Some(canonical(value)))).collect()
        }
        RedactedArguments::Parts(parts) => parts.iter().map(|it| leaf_row(call, it)).collect(),
    };
    // The sort is stable, so the other values of one argument stay together.
    rows.sort_by_key(|(name, row)| (call.description.place_of(name), row.excerpt.is_some()));
    rows.into_iter().map(|(_, row)| row).collect()
}

fn leaf_row(call: &RedactedToolCall, leaf: &RedactedLeaf) -> (String, ToolArgumentRow) {
    match leaf {
        RedactedLeaf::Hidden { pointer } => row(call, pointer, None),
        RedactedLeaf::Shown { pointer, value } => row(call, pointer, Some(canonical(value))),
    }
}

fn row(call: &RedactedToolCall, at: &Pointer, value: Option<String>) -> (String, ToolArgumentRow) {
    let name = at.tokens().next().map(|it| it.into_owned()).unwrap_or_default();
    // A label belongs to the whole argument, and a row can be one value inside it.
    let is_whole = at.tokens().count() == 1;
    let words = |text: Option<&str>| text.filter(|_| is_whole).map(SafeLine::new);
    let value = value.map(SafeJson::new);
    let row = ToolArgumentRow {
        path: SafePath::new(at.to_string()),
        label: words(call.description.label_of(&name)),
        unit: words(call.description.unit_of(&name)),
        excerpt: value.as_ref().and_then(ValueExcerpt::of),
        value,
    };
    (name, row)
}

/// Returns the rows that fit a page, and the number of the others.
fn shown_in_budget(rows: Vec<ToolArgumentRow>) -> (Vec<ToolArgumentRow>, usize) {
    let (all, mut chars) = (rows.len(), 0);
    let fits = |row: &ToolArgumentRow| {
        let value = row.value.as_ref().map_or(0, |it| it.canonical().chars().count());
        chars += row.path.pointer().chars().count();
        chars += if row.excerpt.is_some() { ValueExcerpt::CHARS } else { value };
        chars <= CALL_CHARS_MAX
    };
    let shown: Vec<ToolArgumentRow> = rows.into_iter().take(ROWS_MAX).take_while(fits).collect();
    let left_out = all - shown.len();
    (shown, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_values_and_long_names_are_counted_as_left_out() {
        let row = |name: &str| ToolArgumentRow {
            path: SafePath::new(format!("/{name}")),
            label: None,
            value: Some(SafeJson::new("0")),
            excerpt: None,
            unit: None,
        };
        let many = (0..2_000).map(|it| row(&it.to_string())).collect();
        assert_eq!(shown_in_budget(many).1, 2_000 - ROWS_MAX);
        assert_eq!(shown_in_budget(vec![row(&"k".repeat(CALL_CHARS_MAX))]).1, 1);
    }
}
