//! Parses CEL into `Expr`. The `cel` crate parses. This module resolves names and checks the limits when the policy
//! is loaded, so that no request can meet an unknown name.
//!
//! The interpreter of the crate is not used: it does not limit the cost of an evaluation, and it copies the state
//! into its own values. The tests compare the two.

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr as Ast, IdedExpr, LiteralValue, SelectExpr, operators};
use cel::parser::Parser;

use super::depth_limit;
use super::expr::{Arithmetic, BooleanExpr, ComparisonOp, Const, Expr, Function, Quantifier, RuleVariable};
use crate::policy::bounds;

const VARIABLES: &str = "object, oldObject, change, node, principal, thread, tool and usage";
const FUNCTIONS: &str = "has, size, type, int, double, contains, startsWith, endsWith, lowerAscii, upperAscii, all, \
                         exists and exists_one";
const TYPES: [&str; 8] = ["bool", "double", "int", "list", "map", "null_type", "string", "type"];

/// Error in a condition, for the policy's author.
type ConditionError = String;

pub(super) fn read(source: &str) -> Result<Expr, ConditionError> {
    // The length bounds the work of all steps below, so it is checked first.
    if source.len() > bounds::RULE_BYTES_MAX {
        return Err(format!("it is longer than {} bytes: make it two rules", bounds::RULE_BYTES_MAX));
    }
    if depth_limit::depth(source) > bounds::RULE_BRACKETS_MAX {
        return Err(format!(
            "it has more than {} brackets in one another: make it two rules",
            bounds::RULE_BRACKETS_MAX
        ));
    }
    let parsed = Parser::new().max_recursion_depth(bounds::RULE_DEPTH_MAX).parse(source).map_err(|errors| {
        let first = errors.errors.first();
        let (line, column) = first.map_or((1, 1), |it| it.pos);
        let why = first.map_or("not an expression", |it| it.msg.as_str());
        format!("not CEL, at line {line}, column {column} of it: {why}")
    })?;
    CelParser { parts: 0, locals: Vec::new() }.expr(&parsed)
}

struct CelParser {
    parts: usize,
    locals: Vec<String>,
}

impl CelParser {
    fn expr(&mut self, ast: &IdedExpr) -> Result<Expr, ConditionError> {
        self.parts += 1;
        if self.parts > bounds::RULE_PARTS_MAX {
            return Err(format!("it has more than {} parts: make it two rules", bounds::RULE_PARTS_MAX));
        }
        match &ast.expr {
            Ast::Literal(it) => literal(it).map(Expr::Const),
            Ast::Ident(name) => self.variable(name),
            Ast::Select(it) => self.select(it),
            Ast::Call(it) => self.call(it),
            Ast::List(it) if it.optional_indices.is_empty() => {
                it.elements.iter().map(|it| self.expr(it)).collect::<Result<_, _>>().map(Expr::List)
            }
            Ast::Comprehension(it) => self.quantifier(it),
            Ast::Map(_) | Ast::Struct(_) => Err("rules cannot build maps: compare the members one by one".to_owned()),
            Ast::List(_) | Ast::Unspecified => Err("rules do not support this expression".to_owned()),
        }
    }

    fn variable(&self, name: &str) -> Result<Expr, ConditionError> {
        // An inner variable shadows an outer one of the same name.
        if let Some(slot) = self.locals.iter().rposition(|it| it == name) {
            return Ok(Expr::Local(slot));
        }
        if let Some(fact) = whole_fact(name) {
            return Ok(Expr::Fact(fact));
        }
        if let Some(known) = members(name) {
            let known: Vec<_> = known.iter().map(|(member, _)| format!("{name}.{member}")).collect();
            return Err(format!("`{name}` is no value of its own: name {}", known.join(", ")));
        }
        match TYPES.iter().find(|it| **it == name) {
            Some(it) => Ok(Expr::Const(Const::Type(it))),
            None => Err(format!("unknown variable `{name}`: known are {VARIABLES}")),
        }
    }

    fn select(&mut self, select: &SelectExpr) -> Result<Expr, ConditionError> {
        let field = &select.field;
        if let Ast::Ident(name) = &select.operand.expr
            && !self.locals.contains(name)
            && let Some(known) = members(name)
        {
            let Some((_, fact)) = known.iter().find(|(member, _)| member == field) else {
                let known: Vec<_> = known.iter().map(|(member, _)| *member).collect();
                return Err(format!("unknown variable `{name}.{field}`: `{name}` has {}", known.join(", ")));
            };
            return match (select.test, fact) {
                (false, fact) => Ok(Expr::Fact(*fact)),
                (true, fact) if fact.can_be_missing() => Ok(Expr::Ask(BooleanExpr::HasFact(*fact))),
                // A check that is always true is probably a mistake of the author.
                (true, _) => Err(format!("`{name}.{field}` is always there: leave `has` out")),
            };
        }
        let of = Box::new(self.expr(&select.operand)?);
        Ok(if select.test { Expr::Ask(BooleanExpr::Has(of, field.clone())) } else { Expr::Member(of, field.clone()) })
    }

    fn call(&mut self, call: &CallExpr) -> Result<Expr, ConditionError> {
        let name = call.func_name.as_str();
        // The target of a method is its first operand, so one match covers functions and methods.
        let sides: Vec<&IdedExpr> = call.target.as_deref().into_iter().chain(&call.args).collect();
        let is_method = call.target.is_some();
        match (is_method, sides.as_slice()) {
            (false, [one]) if name == operators::LOGICAL_NOT => self.boxed(one).map(BooleanExpr::Not).map(Expr::Ask),
            (false, [one]) if name == operators::NEGATE => self.boxed(one).map(Expr::Minus),
            (false, [a, b]) if name == operators::LOGICAL_AND => self.pair(a, b).map(BooleanExpr::And).map(Expr::Ask),
            (false, [a, b]) if name == operators::LOGICAL_OR => self.pair(a, b).map(BooleanExpr::Or).map(Expr::Ask),
            (false, [a, b]) if name == operators::INDEX => self.pair(a, b).map(Expr::Item),
            (false, [a, b, c]) if name == operators::CONDITIONAL => {
                Ok(Expr::If(Box::new([self.expr(a)?, self.expr(b)?, self.expr(c)?])))
            }
            (_, [one]) => match function(name, is_method) {
                Some(function) => Ok(Expr::Call(function, self.boxed(one)?)),
                None => Err(unknown_function(name)),
            },
            (_, [a, b]) => match (comparison(name, is_method), arithmetic(name, is_method)) {
                (Some(it), _) => Ok(Expr::Ask(BooleanExpr::Compare(it, self.pair(a, b)?))),
                (None, Some(it)) => Ok(Expr::Binary(it, self.pair(a, b)?)),
                (None, None) => Err(unknown_function(name)),
            },
            _ => Err(unknown_function(name)),
        }
    }

    fn boxed(&mut self, of: &IdedExpr) -> Result<Box<Expr>, ConditionError> {
        self.expr(of).map(Box::new)
    }

    fn pair(&mut self, a: &IdedExpr, b: &IdedExpr) -> Result<Box<[Expr; 2]>, ConditionError> {
        Ok(Box::new([self.expr(a)?, self.expr(b)?]))
    }

    /// Recognizes `all`, `exists` and `exists_one` by the beginning of their macros. Macros that build lists are not
    /// supported.
    fn quantifier(&mut self, it: &ComprehensionExpr) -> Result<Expr, ConditionError> {
        let (quantifier, body) = match (&it.accu_init.expr, &it.loop_step.expr) {
            (Ast::Literal(LiteralValue::Boolean(_)), Ast::Call(step)) if step.func_name == operators::LOGICAL_AND => {
                (Quantifier::All, step.args.get(1))
            }
            (Ast::Literal(LiteralValue::Boolean(_)), Ast::Call(step)) if step.func_name == operators::LOGICAL_OR => {
                (Quantifier::Exists, step.args.get(1))
            }
            (Ast::Literal(LiteralValue::Int(_)), Ast::Call(step)) if step.func_name == operators::CONDITIONAL => {
                (Quantifier::ExistsOne, step.args.first())
            }
            _ => return Err("`map` and `filter` make lists, which rules do not: say it with all or exists".to_owned()),
        };
        let body = body.ok_or("rules do not support this expression")?;
        let name = &it.iter_var;
        // A local variable with the name of a known one would make the rule easy to misread.
        if whole_fact(name).is_some() || members(name).is_some() || TYPES.contains(&name.as_str()) {
            return Err(format!("`{name}` has a meaning already: call the item something else"));
        }
        // The list cannot use the variable of its own quantifier, so it is read before the variable exists.
        let over = self.expr(&it.iter_range)?;
        if self.locals.len() >= bounds::RULE_LOOPS_MAX {
            return Err(format!("at most {} of all, exists and exists_one in one another", bounds::RULE_LOOPS_MAX));
        }
        self.locals.push(name.clone());
        let body = self.expr(body);
        self.locals.pop();
        Ok(Expr::Ask(BooleanExpr::Each(quantifier, Box::new([over, body?]))))
    }
}

fn whole_fact(name: &str) -> Option<RuleVariable> {
    match name {
        "object" => Some(RuleVariable::Object),
        "oldObject" => Some(RuleVariable::OldObject),
        "node" => Some(RuleVariable::Node),
        _ => None,
    }
}

/// Variables that only have members.
fn members(name: &str) -> Option<&'static [(&'static str, RuleVariable)]> {
    match name {
        "change" => {
            Some(&[("path", RuleVariable::Path), ("before", RuleVariable::Before), ("after", RuleVariable::After)])
        }
        "principal" => Some(&[("id", RuleVariable::PrincipalId), ("owner", RuleVariable::PrincipalOwner)]),
        "tool" => Some(&[("name", RuleVariable::ToolName), ("arguments", RuleVariable::ToolArguments)]),
        "usage" => Some(&[("tokens", RuleVariable::Tokens), ("cost", RuleVariable::Cost)]),
        "thread" => Some(&[("committed_nodes", RuleVariable::CommittedNodes)]),
        _ => None,
    }
}

fn literal(it: &LiteralValue) -> Result<Const, ConditionError> {
    match it {
        LiteralValue::Boolean(it) => Ok(Const::Bool(*it.inner())),
        LiteralValue::Int(it) => Ok(Const::Int(*it.inner())),
        LiteralValue::Double(it) => Ok(Const::Double(*it.inner())),
        LiteralValue::String(it) => Ok(Const::Text(it.inner().to_owned())),
        LiteralValue::Null => Ok(Const::Null),
        LiteralValue::UInt(_) => Err("states have no unsigned numbers: remove the u".to_owned()),
        LiteralValue::Bytes(_) => Err("states have no bytes: remove the b".to_owned()),
    }
}

fn function(name: &str, is_method: bool) -> Option<Function> {
    match (name, is_method) {
        ("size", _) => Some(Function::Size),
        ("type", false) => Some(Function::Type),
        ("int", false) => Some(Function::Int),
        ("double", false) => Some(Function::Double),
        ("lowerAscii", true) => Some(Function::LowerAscii),
        ("upperAscii", true) => Some(Function::UpperAscii),
        _ => None,
    }
}

fn comparison(name: &str, is_method: bool) -> Option<ComparisonOp> {
    match (name, is_method) {
        (operators::EQUALS, false) => Some(ComparisonOp::Equal),
        (operators::NOT_EQUALS, false) => Some(ComparisonOp::NotEqual),
        (operators::LESS, false) => Some(ComparisonOp::Less),
        (operators::LESS_EQUALS, false) => Some(ComparisonOp::LessOrEqual),
        (operators::GREATER, false) => Some(ComparisonOp::Greater),
        (operators::GREATER_EQUALS, false) => Some(ComparisonOp::GreaterOrEqual),
        (operators::IN, false) => Some(ComparisonOp::In),
        ("contains", true) => Some(ComparisonOp::Contains),
        ("startsWith", true) => Some(ComparisonOp::StartsWith),
        ("endsWith", true) => Some(ComparisonOp::EndsWith),
        _ => None,
    }
}

fn arithmetic(name: &str, is_method: bool) -> Option<Arithmetic> {
    match (name, is_method) {
        (operators::ADD, false) => Some(Arithmetic::Add),
        (operators::SUBSTRACT, false) => Some(Arithmetic::Subtract),
        (operators::MULTIPLY, false) => Some(Arithmetic::Multiply),
        (operators::DIVIDE, false) => Some(Arithmetic::Divide),
        (operators::MODULO, false) => Some(Arithmetic::Remainder),
        _ => None,
    }
}

fn unknown_function(name: &str) -> ConditionError {
    format!("unknown function `{name}`, or not with these arguments: known are {FUNCTIONS}")
}
