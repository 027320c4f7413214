//! Values while a rule is evaluated: borrowed from the states, never copied.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::cost_limit::{CostMeter, EvaluationError, MeteredResult};
use crate::primitives::id::NodeId;

#[derive(Clone, Debug)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Cow<'a, str>),
    List(&'a [Value]),
    /// A list in the rule itself.
    Made(Rc<[Val<'a>]>),
    /// Names of nodes, a list in order.
    Names(&'a BTreeSet<NodeId>),
    Map(&'a Map<String, Value>),
    Type(&'static str),
}

impl<'a> Val<'a> {
    /// A JSON value. Integers within ±(2^53−1) are ints, and all others are doubles, as the parser stores them.
    pub(super) fn of(value: &'a Value) -> MeteredResult<Self> {
        Ok(match value {
            Value::Null => Self::Null,
            Value::Bool(it) => Self::Bool(*it),
            Value::Number(it) => match it.as_i64() {
                Some(int) => Self::Int(int),
                None => Self::Double(it.as_f64().ok_or(EvaluationError::Failed)?),
            },
            Value::String(it) => Self::Text(Cow::Borrowed(it)),
            Value::Array(it) => Self::List(it),
            Value::Object(it) => Self::Map(it),
        })
    }

    pub(super) const fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::List(_) | Self::Made(_) | Self::Names(_) => "list",
            Self::Map(_) => "map",
            Self::Type(_) => "type",
        }
    }

    /// Returns how many items, members or characters it has.
    pub(super) fn size(&self, meter: &mut CostMeter) -> MeteredResult<usize> {
        match self {
            Self::Text(it) => {
                // Counting characters reads the whole text.
                meter.text(it)?;
                Ok(it.chars().count())
            }
            Self::List(it) => Ok(it.len()),
            Self::Made(it) => Ok(it.len()),
            Self::Names(it) => Ok(it.len()),
            Self::Map(it) => Ok(it.len()),
            _ => Err(EvaluationError::Failed),
        }
    }

    /// Returns the elements for a quantifier: the items of a list or the keys of a map.
    pub(super) fn items(&self) -> Option<ItemIterator<'a>> {
        match self {
            Self::List(it) => Some(ItemIterator::Values(it.iter())),
            Self::Map(it) => Some(ItemIterator::Keys(it.keys())),
            Self::Names(it) => Some(ItemIterator::Names(it.iter())),
            // The iterator shares the list, so that the items need no copy.
            Self::Made(it) => Some(ItemIterator::Made(Rc::clone(it), 0)),
            _ => None,
        }
    }

    fn is_list(&self) -> bool {
        matches!(self, Self::List(_) | Self::Made(_) | Self::Names(_))
    }

    /// Evaluates CEL's `==`. Numbers are compared by value, and other types only with the same type.
    pub(super) fn equals(&self, other: &Self, meter: &mut CostMeter) -> MeteredResult<bool> {
        meter.step()?;
        match (self, other) {
            (Self::Null, Self::Null) => Ok(true),
            (Self::Bool(a), Self::Bool(b)) => Ok(a == b),
            (Self::Type(a), Self::Type(b)) => Ok(a == b),
            (Self::Text(a), Self::Text(b)) => {
                meter.text(a)?;
                Ok(a == b)
            }
            (Self::Int(_) | Self::Double(_), Self::Int(_) | Self::Double(_)) => {
                Ok(numbers(self, other) == Some(Ordering::Equal))
            }
            (Self::Map(a), Self::Map(b)) => same_maps(a, b, meter),
            (a, b) if a.is_list() && b.is_list() => same_lists(a, b, meter),
            _ => Ok(false),
        }
    }

    /// Compares two values by CEL's order, which exists only for numbers, texts and booleans.
    pub(super) fn compare(&self, other: &Self, meter: &mut CostMeter) -> MeteredResult<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Ok(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => {
                meter.text(a)?;
                Ok(a.cmp(b))
            }
            _ => numbers(self, other).ok_or(EvaluationError::Failed),
        }
    }

    /// Evaluates CEL's `in`: the items of a list or the keys of a map.
    pub(super) fn contains(&self, value: &Self, meter: &mut CostMeter) -> MeteredResult<bool> {
        match (self, value) {
            // A lookup by key would need a valid node name, which the text may not be.
            (Self::Names(names), Self::Text(text)) => Ok(names.iter().any(|it| it.as_str() == text)),
            (Self::Map(members), Self::Text(key)) => Ok(members.contains_key(key.as_ref())),
            (Self::Map(_), _) | (Self::Null | Self::Bool(_) | Self::Int(_) | Self::Double(_), _) => {
                Err(EvaluationError::Failed)
            }
            _ => {
                for item in self.items().ok_or(EvaluationError::Failed)? {
                    if value.equals(&item?, meter)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}

/// The items of a list, or the keys of a map.
pub(super) enum ItemIterator<'a> {
    Values(std::slice::Iter<'a, Value>),
    Keys(serde_json::map::Keys<'a>),
    Names(std::collections::btree_set::Iter<'a, NodeId>),
    Made(Rc<[Val<'a>]>, usize),
}

impl<'a> Iterator for ItemIterator<'a> {
    type Item = MeteredResult<Val<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = |it: &'a str| Ok(Val::Text(Cow::Borrowed(it)));
        match self {
            Self::Values(it) => it.next().map(Val::of),
            Self::Keys(it) => it.next().map(|key| text(key)),
            Self::Names(it) => it.next().map(|id| text(id.as_str())),
            Self::Made(items, at) => {
                *at += 1;
                items.get(*at - 1).cloned().map(Ok)
            }
        }
    }
}

fn same_maps(a: &Map<String, Value>, b: &Map<String, Value>, meter: &mut CostMeter) -> MeteredResult<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (key, value) in a {
        meter.text(key)?;
        let Some(other) = b.get(key) else { return Ok(false) };
        if !Val::of(value)?.equals(&Val::of(other)?, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn same_lists(a: &Val<'_>, b: &Val<'_>, meter: &mut CostMeter) -> MeteredResult<bool> {
    if a.size(meter)? != b.size(meter)? {
        return Ok(false);
    }
    let (Some(a), Some(b)) = (a.items(), b.items()) else { return Ok(false) };
    for (a, b) in a.zip(b) {
        if !a?.equals(&b?, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// How two numbers compare; `None` if one is none, or NaN.
fn numbers(a: &Val<'_>, b: &Val<'_>) -> Option<Ordering> {
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => Some(a.cmp(b)),
        (Val::Double(a), Val::Double(b)) => a.partial_cmp(b),
        (Val::Int(a), Val::Double(b)) => mixed(*a, *b),
        (Val::Double(a), Val::Int(b)) => mixed(*b, *a).map(Ordering::reverse),
        _ => None,
    }
}

/// Compares exactly, even if a double cannot represent the integer.
fn mixed(int: i64, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // 2^63 is the first double beyond every i64, and -2^63 is the smallest i64.
    const ABOVE: f64 = 9_223_372_036_854_775_808.0;
    if double >= ABOVE {
        return Some(Ordering::Less);
    }
    if double < -ABOVE {
        return Some(Ordering::Greater);
    }
    #[expect(clippy::cast_possible_truncation, reason = "within i64, and only the whole part is meant")]
    let whole = double.trunc() as i64;
    let fraction = double.fract().partial_cmp(&0.0)?;
    Some(int.cmp(&whole).then(fraction.reverse()))
}
