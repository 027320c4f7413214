//! Fits a view into a token budget. The least important parts are dropped first, in a fixed order. Required parts are
//! never dropped.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::input_schema::{InputMismatch, InputSchema};
use super::tokenizer::Encoding;
use crate::json::canonical::canonical;
use crate::json::pointer::Pointer;

/// Minimum length of a cut text. A shorter beginning would be useless, so the text is dropped.
const CUT_CHARS_MIN: usize = 16;

/// Mark at the end of a cut text.
const CUT_MARK: &str = "…";

/// How a part that did not fit was shortened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TruncationKind {
    /// The part is absent.
    Dropped,
    /// The beginning of the text is present.
    Cut,
}

/// A part that did not fit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Truncated {
    /// The path of the part.
    pub pointer: Pointer,
    /// How it was shortened.
    pub how: TruncationKind,
}

#[derive(Clone, PartialEq, Debug)]
pub struct FittedView {
    /// The part of the view that fits.
    pub payload: Value,
    /// Number of tokens of its canonical JSON.
    pub tokens: u64,
    /// Truncated parts, by their paths.
    pub truncated: Vec<Truncated>,
}

/// Reason why there is no envelope.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ViewRejected {
    /// The view lacks required paths.
    Missing(Vec<Pointer>),
    /// The required parts alone exceed the budget.
    OverBudget {
        /// Minimum number of tokens.
        tokens: u64,
    },
    /// The payload does not fit the schema of what the node receives.
    Unfit(Vec<InputMismatch>),
}

#[derive(Clone, Copy, Debug)]
pub struct ViewRequirements<'a> {
    /// Paths that must be present.
    pub requires: &'a [Pointer],
    /// Paths that are dropped last, the most important first. Parts that it does not name are dropped before all of
    /// these.
    pub priority: &'a [Pointer],
    /// Maximum number of tokens.
    pub max_tokens: Option<u64>,
    pub encoding: Encoding,
    /// Schema of what the node may receive, if the policy has one.
    pub receives: Option<&'a InputSchema>,
}

/// A part of a view that can be dropped by itself.
struct RemovablePart {
    /// Rank of the part. A larger rank is dropped first.
    rank: usize,
    pointer: Pointer,
}

/// Fits a view into its budget, and checks the result against the schema of what its node receives.
pub fn fit(view: &Value, wish: &ViewRequirements<'_>) -> Result<FittedView, ViewRejected> {
    let fitted = fit_into(view, wish)?;
    // The schema checks the text that the model gets, so a dropped part that the schema requires is an error.
    let misfits = wish.receives.map_or_else(Vec::new, |it| it.misfits(&fitted.payload));
    if misfits.is_empty() { Ok(fitted) } else { Err(ViewRejected::Unfit(misfits)) }
}

/// Counts are rounded to this step, so that frequent requests reveal no more about what other nodes are given.
const COUNTED_IN: u64 = 100;

/// Counts the tokens of a view that a node is given, rounded up. If there is no envelope, the whole view is counted,
/// because the node may still read it. Otherwise a node could make a required path disappear and read everything at no
/// cost.
pub fn count_given(view: &Value, wish: &ViewRequirements<'_>) -> u64 {
    let tokens = fit(view, wish).map_or_else(|_| wish.encoding.count(&canonical(view)), |it| it.tokens);
    tokens.div_ceil(COUNTED_IN).saturating_mul(COUNTED_IN)
}

fn fit_into(view: &Value, wish: &ViewRequirements<'_>) -> Result<FittedView, ViewRejected> {
    let missing: Vec<Pointer> = wish.requires.iter().filter(|it| it.resolve(view).is_none()).cloned().collect();
    if !missing.is_empty() {
        return Err(ViewRejected::Missing(missing));
    }
    let count = |payload: &Value| wish.encoding.count(&canonical(payload));
    let tokens = count(view);
    let Some(max) = wish.max_tokens.filter(|it| tokens > *it) else {
        return Ok(FittedView { payload: view.clone(), tokens, truncated: Vec::new() });
    };
    let mut parts = Vec::new();
    wish.parts(&Pointer::root(), view, usize::MAX, &mut parts);
    // The path decides between equal ranks, so the result is the same on every gateway.
    parts.sort_by(|a, b| b.rank.cmp(&a.rank).then_with(|| b.pointer.cmp(&a.pointer)));
    let without = |gone: usize| parts.iter().take(gone).fold(view.clone(), |kept, it| removed(kept, &it.pointer));
    // Only required parts are left, so nothing more can be dropped.
    let least = count(&without(parts.len()));
    if least > max {
        return Err(ViewRejected::OverBudget { tokens: least });
    }
    // Find the smallest number of dropped parts with which the rest fits.
    let (mut few, mut enough) = (0, parts.len());
    while enough - few > 1 {
        let half = few + (enough - few) / 2;
        if count(&without(half)) <= max { enough = half } else { few = half }
    }
    let gone = |it: &RemovablePart| Truncated { pointer: it.pointer.clone(), how: TruncationKind::Dropped };
    let mut truncated: Vec<Truncated> = parts.iter().take(enough).map(gone).collect();
    let mut payload = without(enough);
    if let Some((last, cut)) =
        parts.get(enough - 1).and_then(|last| Some((last, cut(view, &payload, last, &|it| count(it) <= max)?)))
    {
        truncated.retain(|it| it.pointer != last.pointer);
        truncated.push(Truncated { pointer: last.pointer.clone(), how: TruncationKind::Cut });
        payload = cut;
    }
    truncated.sort_by(|a, b| a.pointer.cmp(&b.pointer));
    Ok(FittedView { tokens: count(&payload), payload, truncated })
}

impl ViewRequirements<'_> {
    /// Collects the parts below a path that can be dropped, none inside another. Only members of objects are dropped,
    /// because dropping an item would shift the list.
    fn parts(&self, at: &Pointer, value: &Value, above: usize, found: &mut Vec<RemovablePart>) {
        // A required path and everything below it stay.
        if self.requires.iter().any(|it| it.covers(at)) {
            return;
        }
        let named = self.priority.iter().position(|it| it.covers(at)).unwrap_or(usize::MAX);
        let rank = named.min(above);
        let below = |list: &[Pointer]| list.iter().position(|it| at.covers(it) && it != at);
        let (required_below, named_below) = (below(self.requires), below(self.priority));
        match value {
            Value::Object(members) if at.is_root() || required_below.is_some() || named_below.is_some() => {
                for (key, value) in members {
                    self.parts(&at.child(key), value, rank, found);
                }
            }
            _ if required_below.is_some() => {}
            _ => found.push(RemovablePart { rank: rank.min(named_below.unwrap_or(usize::MAX)), pointer: at.clone() }),
        }
    }
}

fn removed(mut state: Value, pointer: &Pointer) -> Value {
    if let Some((above, key)) = pointer.split_last()
        && let Some(Value::Object(members)) = above.resolve_mut(&mut state)
    {
        members.remove(key.as_ref());
    }
    state
}

/// Adds the beginning of a dropped text, as long as it fits. Returns `None` if too little of it fits.
fn cut(view: &Value, payload: &Value, part: &RemovablePart, fits: &impl Fn(&Value) -> bool) -> Option<Value> {
    let text: Vec<char> = part.pointer.resolve(view)?.as_str()?.chars().collect();
    let (above, key) = part.pointer.split_last()?;
    let with = |length: usize| -> Option<Value> {
        let mut payload = payload.clone();
        let text: String = text.iter().take(length).collect();
        above
            .resolve_mut(&mut payload)?
            .as_object_mut()?
            .insert(key.clone().into_owned(), Value::String(text + CUT_MARK));
        Some(payload)
    };
    // The shortest useful part does not fit, so the text is dropped.
    if text.len() <= CUT_CHARS_MIN || !fits(&with(CUT_CHARS_MIN)?) {
        return None;
    }
    let (mut fitting, mut long) = (CUT_CHARS_MIN, text.len());
    while long - fitting > 1 {
        let half = fitting + (long - fitting) / 2;
        if fits(&with(half)?) { fitting = half } else { long = half }
    }
    with(fitting)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pointers(all: &[&str]) -> Vec<Pointer> {
        all.iter().map(|it| Pointer::try_from(*it).unwrap()).collect()
    }

    fn fitted(view: &Value, requires: &[&str], priority: &[&str], max_tokens: u64) -> Result<FittedView, ViewRejected> {
        let (requires, priority) = (pointers(requires), pointers(priority));
        let encoding = Encoding::O200kBase;
        let receives = None;
        fit(
            view,
            &ViewRequirements {
                requires: &requires,
                priority: &priority,
                max_tokens: Some(max_tokens),
                encoding,
                receives,
            },
        )
    }

    fn gone(fitted: &FittedView) -> Vec<(&str, TruncationKind)> {
        fitted.truncated.iter().map(|it| (it.pointer.as_str(), it.how)).collect()
    }

    fn count(value: &Value) -> u64 {
        Encoding::O200kBase.count(&canonical(value))
    }

    #[test]
    fn view_within_the_budget_is_returned_whole() {
        let view = json!({"a": "one", "b": "two"});
        let whole = fitted(&view, &[], &[], count(&view)).unwrap();
        assert_eq!((whole.payload, whole.tokens, whole.truncated), (view.clone(), count(&view), Vec::new()));
    }

    #[test]
    fn least_important_parts_are_dropped_first_and_required_ones_stay() {
        let view = json!({"a": [1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9], "d": {"x": [1, 1, 1], "y": [2, 2, 2]}});
        let (requires, priority) = (["/a"], ["/c", "/d/y"]);
        let steps: [(Value, &[&str]); 4] = [
            (json!({"a": [1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9], "d": {"y": [2, 2, 2]}}), &["/d/x"]),
            (json!({"a": [1, 2, 3], "c": [7, 8, 9], "d": {"y": [2, 2, 2]}}), &["/b", "/d/x"]),
            (json!({"a": [1, 2, 3], "c": [7, 8, 9], "d": {}}), &["/b", "/d/x", "/d/y"]),
            (json!({"a": [1, 2, 3], "d": {}}), &["/b", "/c", "/d/x", "/d/y"]),
        ];
        for (left, places) in steps {
            let fitted = fitted(&view, &requires, &priority, count(&left)).unwrap();
            assert_eq!(fitted.payload, left);
            assert_eq!(gone(&fitted), places.iter().map(|it| (*it, TruncationKind::Dropped)).collect::<Vec<_>>());
            assert_eq!(fitted.tokens, count(&left));
        }
        let over = fitted(&view, &requires, &priority, count(&json!({"a": [1, 2, 3], "d": {}})) - 1);
        assert!(matches!(over, Err(ViewRejected::OverBudget { .. })), "{over:?}");
    }

    #[test]
    fn last_dropped_text_is_cut_to_the_budget() {
        let view = json!({"kept": "short", "long": "word ".repeat(200)});
        let fitted = fitted(&view, &["/kept"], &["/long"], 60).unwrap();
        assert_eq!(gone(&fitted), [("/long", TruncationKind::Cut)]);
        assert!(fitted.tokens <= 60 && fitted.tokens > 55, "{}", fitted.tokens);
        assert!(fitted.payload["long"].as_str().unwrap().ends_with(CUT_MARK));
        assert_eq!(fitted.tokens, count(&fitted.payload));
    }

    #[test]
    fn missing_required_path_is_named() {
        let missing = fitted(&json!({"a": 1}), &["/a", "/b", "/c/d"], &[], 100);
        assert_eq!(missing, Err(ViewRejected::Missing(pointers(&["/b", "/c/d"]))));
    }

    #[test]
    fn fitted_payload_is_checked_against_the_schema() {
        let text = r#"{"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a", "b"]}"#;
        let receives = InputSchema::read("given", text).unwrap();
        let fitted = |view: &Value, max_tokens| {
            let (requires, priority, encoding) = (&[][..], &[][..], Encoding::O200kBase);
            fit(view, &ViewRequirements { requires, priority, max_tokens, encoding, receives: Some(&receives) })
        };
        let whole = json!({"a": "one", "b": "two"});
        assert_eq!(fitted(&whole, None).unwrap().payload, whole);
        let places = |unfit: Result<FittedView, ViewRejected>| match unfit {
            Err(ViewRejected::Unfit(misfits)) => misfits.into_iter().map(|it| it.pointer).collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        assert_eq!(places(fitted(&json!({"a": 1, "b": 2}), None)), pointers(&["/a"]));
        assert_eq!(places(fitted(&whole, Some(count(&whole) - 1))), pointers(&["/b"]), "it went for lack of room");
    }

    #[test]
    fn context_tokens_are_rounded_to_hundreds_and_count_the_whole_view_without_an_envelope() {
        let view = json!({"kept": "short", "long": "word ".repeat(300)});
        let counted = |requires: &[&str], max_tokens| {
            let (requires, encoding) = (pointers(requires), Encoding::O200kBase);
            count_given(
                &view,
                &ViewRequirements { requires: &requires, priority: &[], max_tokens, encoding, receives: None },
            )
        };
        assert!(count(&view) > 300 && count(&view) < 400);
        assert_eq!(counted(&[], None), 400);
        assert_eq!(counted(&["/kept"], Some(150)), 200);
        assert_eq!(counted(&["/kept"], Some(60)), 100);
        assert_eq!(counted(&["/gone"], Some(60)), 400, "what is required is not there");
        assert_eq!(counted(&["/long"], Some(60)), 400, "what is required is too much");
        let receives = InputSchema::read("given", r#"{"required": ["other"]}"#).unwrap();
        let (requires, priority, encoding) = (&[][..], &[][..], Encoding::O200kBase);
        let unfit = ViewRequirements { requires, priority, max_tokens: Some(60), encoding, receives: Some(&receives) };
        assert_eq!(count_given(&view, &unfit), 400, "it is not what the node receives");
    }

    #[test]
    fn list_with_a_required_part_stays_whole() {
        let view = json!({"list": [{"id": 1}, {"id": 2}], "other": "x ".repeat(50)});
        let fitted = fitted(&view, &["/list/1/id"], &[], count(&json!({"list": [{"id": 1}, {"id": 2}]}))).unwrap();
        assert_eq!(fitted.payload, json!({"list": [{"id": 1}, {"id": 2}]}));
    }
}
