//! What agents say they used, and what that comes to in a thread. Counted in whole numbers, so that a sum is exact.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};

use crate::domain::chain::statement::Statement;
use crate::domain::json::canonical::canonical;
use crate::domain::json::number::INTEGER_MAX;
use crate::domain::json::pointer::Pointer;
use crate::domain::primitives::id::NodeId;

#[cfg(test)]
mod tests;

/// No run takes a billion million tokens, and sums of as many calls as a thread could have still fit.
pub const TOKENS_MAX: u64 = 1_000_000_000_000;

/// Nine digits before the point and six after it are what every double holds exactly.
const COST_WHOLE_DIGITS_MAX: usize = 9;
const COST_DECIMALS_MAX: usize = 6;

const MILLIONTHS: u64 = 1_000_000;

/// An amount of money in millionths, of whatever currency the flow counts in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost(u64);

/// What a request took, as its agent says. What it does not say is not zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    pub tokens: Option<u64>,
    pub cost: Option<Cost>,
}

/// What is wrong with a part of a request, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidUsage {
    pub pointer: Pointer,
    pub detail: &'static str,
}

impl InvalidUsage {
    /// The same, where that part stands below a place.
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
    /// Tokens of what nodes were given, in hundreds. Left out where nothing was counted.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub context_tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_nothing(tokens: &u64) -> bool {
    *tokens == 0
}

/// What each node has used in a thread: the sum over its chain.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Totals(BTreeMap<NodeId, UsageAmount>);

/// Both together. Rows are JSON: past what its numbers hold exactly, a sum stays there, which is above every bound.
fn sum(a: u64, b: u64) -> u64 {
    a.saturating_add(b).min(INTEGER_MAX)
}

impl Cost {
    /// Reads a plain decimal: digits, and up to six after a point.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, decimals) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
        let digits = |it: &str, max| (1..=max).contains(&it.len()) && it.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole, COST_WHOLE_DIGITS_MAX) || decimals.is_some_and(|it| !digits(it, COST_DECIMALS_MAX)) {
            return None;
        }
        let decimals = format!("{:0<COST_DECIMALS_MAX$}", decimals.unwrap_or_default());
        Some(Self(whole.parse::<u64>().ok()? * MILLIONTHS + decimals.parse::<u64>().ok()?))
    }

    /// Of a JSON number, by the decimal that it is written as.
    fn of(number: &Number) -> Option<Self> {
        Self::parse(&canonical(&Value::Number(number.clone())))
    }

    pub fn text(self) -> String {
        let text = format!("{}.{:06}", self.0 / MILLIONTHS, self.0 % MILLIONTHS);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    /// As a double, which holds it exactly.
    pub fn double(self) -> f64 {
        self.text().parse().unwrap_or(f64::INFINITY)
    }

    pub fn json(self) -> Value {
        let mut value = json!(self.double());
        crate::domain::json::number::normalise(&mut value);
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
            return Err(wrong(&root, "usage is an object with `tokens` and `cost`"));
        };
        if let Some(key) = members.keys().find(|it| !matches!(it.as_str(), "tokens" | "cost")) {
            return Err(wrong(&root.child(key), "usage has `tokens` and `cost`, and nothing else"));
        }
        let tokens = members.get("tokens").map(|it| it.as_u64().filter(|it| *it <= TOKENS_MAX).ok_or(()));
        let cost = members.get("cost").map(|it| it.as_number().and_then(Cost::of).ok_or(()));
        Ok(Self {
            tokens: tokens
                .transpose()
                .map_err(|()| wrong(&root.child("tokens"), "tokens are a whole number, from 0 to a million million"))?,
            cost: cost.transpose().map_err(|()| {
                wrong(
                    &root.child("cost"),
                    "a cost is a number from 0, below a thousand million, with up to six decimals",
                )
            })?,
        })
    }

    /// As it is stated: what was said, and null if nothing was.
    pub fn stated(&self) -> Option<Value> {
        let mut members = Map::new();
        members.extend(self.tokens.map(|it| ("tokens".to_owned(), json!(it))));
        members.extend(self.cost.map(|it| ("cost".to_owned(), it.json())));
        (!members.is_empty()).then_some(Value::Object(members))
    }
}

impl UsageAmount {
    /// With what a request used.
    #[must_use]
    pub fn with(self, calls: u64, usage: Usage) -> Self {
        Self {
            calls: sum(self.calls, calls),
            tokens: sum(self.tokens, usage.tokens.unwrap_or(0)),
            cost_millionths: self.cost_millionths.plus(usage.cost.unwrap_or_default()),
            ..self
        }
    }

    /// With what its node was given.
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
                detail: "what was used is an object with `calls`, `tokens`, `cost` and `context_tokens`",
            });
        };
        let mut rest = members.clone();
        let mut whole = |name: &str, detail| match rest.remove(name) {
            Some(count) => {
                let wrong = InvalidUsage { pointer: root.child(name), detail };
                count.as_u64().filter(|it| *it <= TOKENS_MAX).ok_or(wrong)
            }
            None => Ok(0),
        };
        let calls = whole("calls", "calls are a whole number, from 0 to a million million")?;
        let given = whole("context_tokens", "tokens of context are a whole number, from 0 to a million million")?;
        Ok(Self::default().with(calls, Usage::read(&Value::Object(rest))?).given(given))
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
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
    /// Reads what each node is supposed to have used: `{node: {calls?, tokens?, cost?, context_tokens?}}`.
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

    /// What all nodes together have used.
    pub fn of_thread(&self) -> UsageAmount {
        self.0.values().fold(UsageAmount::default(), |sum, it| sum.plus(*it))
    }

    /// What was used since an earlier time.
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

    /// What each node has used, by name.
    pub fn nodes(&self) -> impl Iterator<Item = (&NodeId, UsageAmount)> {
        self.0.iter().map(|(node, spent)| (node, *spent))
    }

    /// Counts what a committed statement says, and what its node was given, if that was counted. `None` if it says what no
    /// request could.
    #[must_use]
    pub fn counting(mut self, statement: &Statement, context_tokens: Option<u64>) -> Option<Self> {
        let usage = statement.usage.as_ref().map_or(Some(Usage::default()), |it| Usage::read(it).ok())?;
        let spent = UsageAmount::default().with(u64::from(statement.tool.is_some()), usage);
        let spent = spent.given(context_tokens.unwrap_or(0));
        match &statement.node {
            Some(node) if !spent.is_nothing() => {
                let sum = self.of_node(node).plus(spent);
                self.0.insert(node.clone(), sum);
            }
            _ => {}
        }
        Some(self)
    }
}
