//! The usage that agents report, and its totals per thread. Whole numbers keep the sums exact.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};

use crate::chain::statement::Statement;
use crate::json::canonical::canonical;
use crate::json::number::INTEGER_MAX;
use crate::json::pointer::Pointer;
use crate::primitives::id::NodeId;

#[cfg(test)]
mod tests;

/// The limit of reported tokens. It is far above every real run, and the sum over a thread still fits into the number
/// type.
pub const TOKENS_MAX: u64 = 1_000_000_000_000;

/// A double represents nine digits before the point and six after it exactly.
const COST_WHOLE_DIGITS_MAX: usize = 9;
const COST_DECIMALS_MAX: usize = 6;

const MILLIONTHS: u64 = 1_000_000;

/// An amount of money in millionths of the flow's currency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost(u64);

/// The usage that the agent reported for a request. A missing member is unknown, not zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    pub tokens: Option<u64>,
    pub cost: Option<Cost>,
}

/// An invalid part of a request, with its path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidUsage {
    pub pointer: Pointer,
    pub detail: &'static str,
}

impl InvalidUsage {
    /// Returns the same error for a part below `at`.
    #[must_use]
    pub fn below(self, at: &Pointer) -> Self {
        let pointer = self.pointer.tokens().fold(at.clone(), |above, token| above.child(&token));
        Self { pointer, ..self }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageAmount {
    pub calls: u64,
    pub tokens: u64,
    pub cost_millionths: Cost,
    /// Tokens of the context that nodes received, in hundreds. Omitted if they were not counted.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub context_tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_nothing(tokens: &u64) -> bool {
    *tokens == 0
}

/// The usage of each node in a thread: the sum over its chain.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Totals(BTreeMap<NodeId, UsageAmount>);

/// Adds with saturation at the largest integer that JSON represents exactly. This value is above every limit.
fn sum(a: u64, b: u64) -> u64 {
    a.saturating_add(b).min(INTEGER_MAX)
}

impl Cost {
    /// Parses a plain decimal: digits, and up to six after a point.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, decimals) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
        let digits = |it: &str, max| (1..=max).contains(&it.len()) && it.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole, COST_WHOLE_DIGITS_MAX) || decimals.is_some_and(|it| !digits(it, COST_DECIMALS_MAX)) {
            return None;
        }
        let decimals = format!("{:0<COST_DECIMALS_MAX$}", decimals.unwrap_or_default());
        Some(Self(whole.parse::<u64>().ok()? * MILLIONTHS + decimals.parse::<u64>().ok()?))
    }

    /// Converts a JSON number by its decimal text, because a double would round it.
    fn of(number: &Number) -> Option<Self> {
        Self::parse(&canonical(&Value::Number(number.clone())))
    }

    pub fn text(self) -> String {
        let text = format!("{}.{:06}", self.0 / MILLIONTHS, self.0 % MILLIONTHS);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    /// Returns the amount as a double, which represents it exactly.
    pub fn double(self) -> f64 {
        self.text().parse().unwrap_or(f64::INFINITY)
    }

    pub fn json(self) -> Value {
        let mut value = json!(self.double());
        crate::json::number::normalise(&mut value);
        value
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(sum(self.0, other.0))
    }
}

impl Usage {
    /// Reads `{tokens?, cost?}`.
    pub fn read(value: &Value) -> Result<Self, InvalidUsage> {
        let root = Pointer::root();
        let wrong = |pointer: &Pointer, detail| InvalidUsage { pointer: pointer.clone(), detail };
        let Value::Object(members) = value else {
            return Err(wrong(&root, "`usage` must be an object with `tokens` and `cost`"));
        };
        if let Some(key) = members.keys().find(|it| !matches!(it.as_str(), "tokens" | "cost")) {
            return Err(wrong(&root.child(key), "unknown member: `usage` has only `tokens` and `cost`"));
        }
        let tokens = members.get("tokens").map(|it| it.as_u64().filter(|it| *it <= TOKENS_MAX).ok_or(()));
        let cost = members.get("cost").map(|it| it.as_number().and_then(Cost::of).ok_or(()));
        Ok(Self {
            tokens: tokens.transpose().map_err(|()| {
                wrong(&root.child("tokens"), "`tokens` must be a whole number from 0 to 1000000000000")
            })?,
            cost: cost.transpose().map_err(|()| {
                wrong(
                    &root.child("cost"),
                    "`cost` must be a number from 0 to below 1000000000 with at most six decimals",
                )
            })?,
        })
    }

    /// Returns the statement's form: the reported members, or `None` without any.
    pub fn stated(&self) -> Option<Value> {
        let mut members = Map::new();
        members.extend(self.tokens.map(|it| ("tokens".to_owned(), json!(it))));
        members.extend(self.cost.map(|it| ("cost".to_owned(), it.json())));
        (!members.is_empty()).then_some(Value::Object(members))
    }
}

impl UsageAmount {
    /// Adds the usage of a request.
    #[must_use]
    pub fn with(self, calls: u64, usage: Usage) -> Self {
        Self {
            calls: sum(self.calls, calls),
            tokens: sum(self.tokens, usage.tokens.unwrap_or(0)),
            cost_millionths: self.cost_millionths.plus(usage.cost.unwrap_or_default()),
            ..self
        }
    }

    /// Adds the tokens of context that the node received.
    #[must_use]
    pub fn given(self, context_tokens: u64) -> Self {
        Self { context_tokens: sum(self.context_tokens, context_tokens), ..self }
    }

    /// Reads `{calls?, tokens?, cost?, context_tokens?}`.
    fn read(value: &Value) -> Result<Self, InvalidUsage> {
        let root = Pointer::root();
        let Value::Object(members) = value else {
            return Err(InvalidUsage {
                pointer: root,
                detail: "the usage of a node must be an object with `calls`, `tokens`, `cost` and `context_tokens`",
            });
        };
        // The remaining members are those of `usage`, which refuses unknown ones.
        let mut rest = members.clone();
        let mut whole = |name: &str, detail| match rest.remove(name) {
            Some(count) => {
                let wrong = InvalidUsage { pointer: root.child(name), detail };
                count.as_u64().filter(|it| *it <= TOKENS_MAX).ok_or(wrong)
            }
            None => Ok(0),
        };
        let calls = whole("calls", "`calls` must be a whole number from 0 to 1000000000000")?;
        let given = whole("context_tokens", "`context_tokens` must be a whole number from 0 to 1000000000000")?;
        Ok(Self::default().with(calls, Usage::read(&Value::Object(rest))?).given(given))
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        // The totals are added through `with`, so they saturate in the same way.
        let usage = Usage { tokens: Some(other.tokens), cost: Some(other.cost_millionths) };
        self.with(other.calls, usage).given(other.context_tokens)
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(earlier.calls),
            tokens: self.tokens.saturating_sub(earlier.tokens),
            cost_millionths: Cost(self.cost_millionths.0.saturating_sub(earlier.cost_millionths.0)),
            context_tokens: self.context_tokens.saturating_sub(earlier.context_tokens),
        }
    }

    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl Totals {
    /// Reads hypothetical totals: `{node: {calls?, tokens?, cost?, context_tokens?}}`.
    pub fn read(value: &Value) -> Result<Self, InvalidUsage> {
        let root = Pointer::root();
        let Value::Object(members) = value else {
            return Err(InvalidUsage { pointer: root, detail: "totals are an object with what each node has used" });
        };
        let mut totals = BTreeMap::new();
        for (name, used) in members {
            let at = root.child(name);
            let node = NodeId::try_from(name.as_str())
                .map_err(|_| InvalidUsage { pointer: at.clone(), detail: "this is not the name of a node" })?;
            let spent = UsageAmount::read(used).map_err(|it| it.below(&at))?;
            totals.insert(node, spent);
        }
        Ok(Self(totals))
    }

    pub fn of_node(&self, node: &NodeId) -> UsageAmount {
        self.0.get(node).copied().unwrap_or_default()
    }

    /// Returns the total of all nodes.
    pub fn of_thread(&self) -> UsageAmount {
        self.0.values().fold(UsageAmount::default(), |sum, it| sum.plus(*it))
    }

    /// Returns the usage since an earlier total.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let of_node = |(node, now): (&NodeId, &UsageAmount)| (node.clone(), now.since(earlier.of_node(node)));
        Self(self.0.iter().map(of_node).filter(|(_, it)| !it.is_nothing()).collect())
    }

    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        for (node, more) in &other.0 {
            let sum = self.of_node(node).plus(*more);
            self.0.insert(node.clone(), sum);
        }
        self
    }

    /// Returns the usage of each node, by name.
    pub fn nodes(&self) -> impl Iterator<Item = (&NodeId, UsageAmount)> {
        self.0.iter().map(|(node, spent)| (node, *spent))
    }

    /// Adds the usage of a committed statement and, if it was counted, the tokens of context. Returns `None` if the
    /// statement has a usage that no request could have.
    #[must_use]
    pub fn counting(mut self, statement: &Statement, context_tokens: Option<u64>) -> Option<Self> {
        let usage = statement.usage.as_ref().map_or(Some(Usage::default()), |it| Usage::read(it).ok())?;
        // Each tool call counts as one call.
        let spent = UsageAmount::default().with(u64::from(statement.tool.is_some()), usage);
        let spent = spent.given(context_tokens.unwrap_or(0));
        match &statement.node {
            // A node without usage gets no entry, so older rows keep their bytes.
            Some(node) if !spent.is_nothing() => {
                let sum = self.of_node(node).plus(spent);
                self.0.insert(node.clone(), sum);
            }
            _ => {}
        }
        Some(self)
    }
}
