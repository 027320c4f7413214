//! Evaluates a condition. A missing value is an error, never true or false.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::cost_limit::{CostMeter, EvaluationError, MeteredResult};
use super::expr::{Arithmetic, BooleanExpr, ComparisonOp, Const, Expr, Function, Quantifier, RuleVariable};
use super::value::Val;
use crate::json::diff::LeafChange;
use crate::policy::request::RequestContext;

/// Input of a condition.
#[derive(Clone, Copy)]
pub(super) struct RuleInputs<'a> {
    pub(super) before: &'a Value,
    pub(super) after: &'a Value,
    pub(super) change: Option<&'a LeafChange>,
    pub(super) node: &'a str,
    pub(super) around: &'a RequestContext<'a>,
}

pub(super) struct Evaluation<'a, 'm> {
    scene: RuleInputs<'a>,
    locals: Vec<Val<'a>>,
    meter: &'m mut CostMeter,
}

/// Returns whether the condition holds. Anything but true and false is an error.
pub(super) fn holds<'a>(when: &'a Expr, scene: RuleInputs<'a>, meter: &mut CostMeter) -> MeteredResult<bool> {
    Evaluation { scene, locals: Vec::new(), meter }.truth(when)
}

impl<'a> Evaluation<'a, '_> {
    fn truth(&mut self, expr: &'a Expr) -> MeteredResult<bool> {
        match expr {
            Expr::Ask(question) => self.answer(question),
            // A truth value that comes from the input.
            expr => match self.value(expr)? {
                Val::Bool(it) => Ok(it),
                _ => Err(EvaluationError::Failed),
            },
        }
    }

    fn value(&mut self, expr: &'a Expr) -> MeteredResult<Val<'a>> {
        // A comparison counts its own step.
        if !matches!(expr, Expr::Ask(_)) {
            self.meter.step()?;
        }
        match expr {
            Expr::Ask(question) => self.answer(question).map(Val::Bool),
            Expr::Const(it) => Ok(constant(it)),
            Expr::Fact(it) => self.fact(*it),
            Expr::Local(slot) => self.locals.get(*slot).cloned().ok_or(EvaluationError::Failed),
            Expr::Member(of, name) => self.member(of, name)?.map_or(Err(EvaluationError::Failed), Val::of),
            Expr::Item(pair) => self.item(pair),
            Expr::Minus(of) => match self.value(of)? {
                // The smallest int has no positive counterpart.
                Val::Int(it) => it.checked_neg().map(Val::Int).ok_or(EvaluationError::Failed),
                Val::Double(it) => Ok(Val::Double(-it)),
                _ => Err(EvaluationError::Failed),
            },
            Expr::If(three) => {
                // As in CEL, the other side is not evaluated, so it cannot fail.
                let chosen = if self.truth(&three[0])? { &three[1] } else { &three[2] };
                self.value(chosen)
            }
            Expr::Binary(operator, pair) => {
                let (left, right) = (self.value(&pair[0])?, self.value(&pair[1])?);
                self.arithmetic(*operator, &left, &right)
            }
            Expr::Call(function, of) => {
                let of = self.value(of)?;
                self.call(*function, &of)
            }
            Expr::List(items) => {
                let items: Vec<_> = items.iter().map(|it| self.value(it)).collect::<MeteredResult<_>>()?;
                Ok(Val::Made(items.into()))
            }
        }
    }

    /// Evaluates a comparison without building a value for its result.
    fn answer(&mut self, question: &'a BooleanExpr) -> MeteredResult<bool> {
        self.meter.step()?;
        match question {
            BooleanExpr::HasFact(it) => Ok(self.maybe(*it)?.is_some()),
            BooleanExpr::Has(of, name) => Ok(self.member(of, name)?.is_some()),
            BooleanExpr::Not(of) => Ok(!self.truth(of)?),
            BooleanExpr::And(pair) => self.joined(pair, false),
            BooleanExpr::Or(pair) => self.joined(pair, true),
            BooleanExpr::Compare(comparison, pair) => {
                let (left, right) = (self.value(&pair[0])?, self.value(&pair[1])?);
                self.compared(*comparison, &left, &right)
            }
            BooleanExpr::Each(quantifier, pair) => self.each(*quantifier, pair),
        }
    }

    fn fact(&self, fact: RuleVariable) -> MeteredResult<Val<'a>> {
        self.maybe(fact)?.unwrap_or(Err(EvaluationError::Failed))
    }

    /// Returns `None` if the request lacks the value. An unknown value is an error even then.
    fn maybe(&self, fact: RuleVariable) -> MeteredResult<Option<MeteredResult<Val<'a>>>> {
        let RuleInputs { before, after, change, node, around } = self.scene;
        let change = || change.ok_or(EvaluationError::Failed);
        let principal = || around.principal.ok_or(EvaluationError::Unsupposed);
        let is = |it| Ok(Some(Ok(it)));
        match fact {
            RuleVariable::Object => Ok(Some(Val::of(after))),
            RuleVariable::OldObject => Ok(Some(Val::of(before))),
            RuleVariable::Path => is(text(change()?.pointer.as_str())),
            RuleVariable::Before => Ok(change()?.before.as_ref().map(Val::of)),
            RuleVariable::After => Ok(change()?.after.as_ref().map(Val::of)),
            RuleVariable::Node => is(text(node)),
            RuleVariable::PrincipalId => is(text(principal()?.id)),
            RuleVariable::PrincipalOwner => is(text(principal()?.owner)),
            RuleVariable::CommittedNodes => is(Val::Names(around.committed_nodes.ok_or(EvaluationError::Unsupposed)?)),
            RuleVariable::ToolName => Ok(around.tool.map(|it| Ok(text(it.name.as_str())))),
            RuleVariable::ToolArguments => Ok(around.tool.map(|it| Ok(Val::Map(&it.arguments)))),
            RuleVariable::Tokens => {
                Ok(around.usage.tokens.map(|it| i64::try_from(it).map(Val::Int).map_err(|_| EvaluationError::Failed)))
            }
            RuleVariable::Cost => Ok(around.usage.cost.map(|it| Ok(Val::Double(it.double())))),
        }
    }

    /// Returns `None` if the map has no such member.
    fn member(&mut self, of: &'a Expr, name: &str) -> MeteredResult<Option<&'a Value>> {
        let members = match of {
            // Does the same as `value`, without a copy of the item.
            Expr::Local(slot) => {
                self.meter.step()?;
                match self.locals.get(*slot) {
                    Some(Val::Map(members)) => *members,
                    _ => return Err(EvaluationError::Failed),
                }
            }
            of => match self.value(of)? {
                Val::Map(members) => members,
                _ => return Err(EvaluationError::Failed),
            },
        };
        Ok(members.get(name))
    }

    fn item(&mut self, pair: &'a [Expr; 2]) -> MeteredResult<Val<'a>> {
        match (self.value(&pair[0])?, self.value(&pair[1])?) {
            (Val::Map(members), Val::Text(key)) => {
                members.get(key.as_ref()).map_or(Err(EvaluationError::Failed), Val::of)
            }
            (Val::List(items), Val::Int(index)) => {
                // A negative index matches no item.
                let item = usize::try_from(index).ok().and_then(|it| items.get(it));
                item.map_or(Err(EvaluationError::Failed), Val::of)
            }
            (Val::Made(items), Val::Int(index)) => {
                usize::try_from(index).ok().and_then(|it| items.get(it)).cloned().ok_or(EvaluationError::Failed)
            }
            _ => Err(EvaluationError::Failed),
        }
    }

    /// Evaluates `&&` and `||`. As in CEL, one side that decides the result makes up for an error of the other. If
    /// the steps are used up, the other side is not evaluated.
    fn joined(&mut self, pair: &'a [Expr; 2], deciding: bool) -> MeteredResult<bool> {
        let left = self.truth(&pair[0]);
        if left == Ok(deciding) || self.truth(&pair[1])? == deciding {
            return Ok(deciding);
        }
        left
    }

    fn each(&mut self, quantifier: Quantifier, pair: &'a [Expr; 2]) -> MeteredResult<bool> {
        let over = self.value(&pair[0])?;
        let mut found = 0_usize;
        for item in over.items().ok_or(EvaluationError::Failed)? {
            self.meter.step()?;
            self.locals.push(item?);
            let holds = self.truth(&pair[1]);
            // The variable is removed even after an error, because `&&` and `||` may continue with the other side.
            self.locals.pop();
            match (quantifier, holds?) {
                (Quantifier::All, false) => return Ok(false),
                (Quantifier::Exists, true) => return Ok(true),
                // As in CEL, every item is evaluated, so that an error in a later item counts.
                (Quantifier::ExistsOne, true) => found += 1,
                _ => {}
            }
        }
        Ok(match quantifier {
            Quantifier::All => true,
            Quantifier::Exists => false,
            Quantifier::ExistsOne => found == 1,
        })
    }

    fn compared(&mut self, comparison: ComparisonOp, left: &Val<'a>, right: &Val<'a>) -> MeteredResult<bool> {
        let mut compare = || left.compare(right, self.meter);
        Ok(match comparison {
            ComparisonOp::Equal => left.equals(right, self.meter)?,
            ComparisonOp::NotEqual => !left.equals(right, self.meter)?,
            ComparisonOp::Less => compare()? == Ordering::Less,
            ComparisonOp::LessOrEqual => compare()? != Ordering::Greater,
            ComparisonOp::Greater => compare()? == Ordering::Greater,
            ComparisonOp::GreaterOrEqual => compare()? != Ordering::Less,
            ComparisonOp::In => right.contains(left, self.meter)?,
            ComparisonOp::Contains | ComparisonOp::StartsWith | ComparisonOp::EndsWith => {
                let (Val::Text(whole), Val::Text(part)) = (left, right) else { return Err(EvaluationError::Failed) };
                // The search may read the whole text.
                self.meter.text(whole)?;
                match comparison {
                    ComparisonOp::Contains => whole.contains(part.as_ref()),
                    ComparisonOp::StartsWith => whole.starts_with(part.as_ref()),
                    _ => whole.ends_with(part.as_ref()),
                }
            }
        })
    }

    /// Adds ints with an overflow check, adds doubles, and joins texts. Types are never mixed.
    fn arithmetic(&mut self, operator: Arithmetic, left: &Val<'a>, right: &Val<'a>) -> MeteredResult<Val<'a>> {
        match (left, right) {
            (Val::Int(a), Val::Int(b)) => {
                let result = match operator {
                    Arithmetic::Add => a.checked_add(*b),
                    Arithmetic::Subtract => a.checked_sub(*b),
                    Arithmetic::Multiply => a.checked_mul(*b),
                    Arithmetic::Divide => a.checked_div(*b),
                    Arithmetic::Remainder => a.checked_rem(*b),
                };
                result.map(Val::Int).ok_or(EvaluationError::Failed)
            }
            (Val::Double(a), Val::Double(b)) => match operator {
                Arithmetic::Add => Ok(Val::Double(a + b)),
                Arithmetic::Subtract => Ok(Val::Double(a - b)),
                Arithmetic::Multiply => Ok(Val::Double(a * b)),
                Arithmetic::Divide => Ok(Val::Double(a / b)),
                // CEL defines `%` only for ints.
                Arithmetic::Remainder => Err(EvaluationError::Failed),
            },
            (Val::Text(a), Val::Text(b)) if operator == Arithmetic::Add => {
                // The result is a new text, so both sides are copied.
                self.meter.text(a)?;
                self.meter.text(b)?;
                Ok(Val::Text(Cow::Owned(format!("{a}{b}"))))
            }
            _ => Err(EvaluationError::Failed),
        }
    }

    fn call(&mut self, function: Function, of: &Val<'a>) -> MeteredResult<Val<'a>> {
        match (function, of) {
            (Function::Size, of) => {
                let size = of.size(self.meter)?;
                i64::try_from(size).map(Val::Int).map_err(|_| EvaluationError::Failed)
            }
            (Function::Type, of) => Ok(Val::Type(of.type_name())),
            (Function::Int, Val::Int(it)) => Ok(Val::Int(*it)),
            (Function::Int, Val::Double(it)) => whole(*it).map(Val::Int).ok_or(EvaluationError::Failed),
            (Function::Double, Val::Double(it)) => Ok(Val::Double(*it)),
            #[expect(clippy::cast_precision_loss, reason = "CEL's double() rounds, too")]
            (Function::Double, Val::Int(it)) => Ok(Val::Double(*it as f64)),
            (Function::LowerAscii, Val::Text(it)) => {
                self.meter.text(it)?;
                Ok(Val::Text(Cow::Owned(it.to_ascii_lowercase())))
            }
            (Function::UpperAscii, Val::Text(it)) => {
                self.meter.text(it)?;
                Ok(Val::Text(Cow::Owned(it.to_ascii_uppercase())))
            }
            _ => Err(EvaluationError::Failed),
        }
    }
}

fn constant(it: &Const) -> Val<'_> {
    match it {
        Const::Null => Val::Null,
        Const::Bool(it) => Val::Bool(*it),
        Const::Int(it) => Val::Int(*it),
        Const::Double(it) => Val::Double(*it),
        Const::Text(it) => text(it),
        Const::Type(it) => Val::Type(it),
    }
}

const fn text(it: &str) -> Val<'_> {
    Val::Text(Cow::Borrowed(it))
}

/// Returns the whole part of a double that fits an int.
fn whole(double: f64) -> Option<i64> {
    // The limits are the doubles next to 2^63. As in CEL's own libraries, both are out of range.
    const ABOVE: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "within i64, and int() cuts off")]
    let int = double as i64;
    (double > -ABOVE && double < ABOVE).then_some(int)
}
