//! A condition in the form in which it is evaluated. Names and limits were checked when it was parsed.

/// An expression of the part of CEL that rules may use.
#[derive(Debug, PartialEq)]
pub(super) enum Expr {
    Const(Const),
    /// A variable of the request.
    Fact(RuleVariable),
    /// The variable of a quantifier; the outermost is 0.
    Local(usize),
    /// `of.name`
    Member(Box<Expr>, String),
    /// `of[index]`
    Item(Box<[Expr; 2]>),
    /// `-it`
    Minus(Box<Expr>),
    /// `a ? b : c`
    If(Box<[Expr; 3]>),
    /// An operator with two operands and a value as its result.
    Binary(Arithmetic, Box<[Expr; 2]>),
    Call(Function, Box<Expr>),
    List(Vec<Expr>),
    /// A boolean expression.
    Ask(BooleanExpr),
}

/// An expression whose result is a boolean or an error, never another value.
#[derive(Debug, PartialEq)]
pub(super) enum BooleanExpr {
    /// Whether the variable is present.
    HasFact(RuleVariable),
    /// `has(of.name)`
    Has(Box<Expr>, String),
    /// `!it`
    Not(Box<Expr>),
    /// `a && b`
    And(Box<[Expr; 2]>),
    /// `a || b`
    Or(Box<[Expr; 2]>),
    /// Comparison of two values.
    Compare(ComparisonOp, Box<[Expr; 2]>),
    /// `over.all(x, body)` and its like.
    Each(Quantifier, Box<[Expr; 2]>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Const {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(String),
    /// The name of a type, as `type(x)` gives it.
    Type(&'static str),
}

/// Variables of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleVariable {
    Object,
    OldObject,
    Path,
    Before,
    After,
    Node,
    PrincipalId,
    PrincipalOwner,
    /// Nodes that have committed in the thread.
    CommittedNodes,
    ToolName,
    ToolArguments,
    /// Tokens that the request used.
    Tokens,
    Cost,
}

impl RuleVariable {
    /// Returns whether a request can lack the variable, so that `has` is useful.
    pub(super) const fn can_be_missing(self) -> bool {
        matches!(self, Self::Before | Self::After | Self::ToolName | Self::ToolArguments | Self::Tokens | Self::Cost)
    }

    /// Returns whether the variable belongs to one change, so that the rule is evaluated for each change.
    pub(super) const fn is_of_a_change(self) -> bool {
        matches!(self, Self::Path | Self::Before | Self::After)
    }
}

/// A comparison. Both sides are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComparisonOp {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Contains,
    StartsWith,
    EndsWith,
}

/// An arithmetic operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Size,
    Type,
    Int,
    Double,
    LowerAscii,
    UpperAscii,
}

/// Number of items that must satisfy the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantifier {
    All,
    Exists,
    ExistsOne,
}

impl Expr {
    /// Returns whether the condition uses the change, so that it is evaluated for each change.
    pub(super) fn is_of_a_change(&self) -> bool {
        match self {
            Self::Fact(fact) => fact.is_of_a_change(),
            // The list of a local variable is checked at its quantifier.
            Self::Const(_) | Self::Local(_) => false,
            Self::Member(of, _) | Self::Minus(of) | Self::Call(_, of) => of.is_of_a_change(),
            Self::Item(pair) | Self::Binary(_, pair) => pair.iter().any(Self::is_of_a_change),
            Self::If(three) => three.iter().any(Self::is_of_a_change),
            Self::List(items) => items.iter().any(Self::is_of_a_change),
            Self::Ask(question) => question.is_of_a_change(),
        }
    }

    /// Returns the only path of a change for which the condition can be true: `change.path == '…'` as a part of the
    /// top-level `&&`. For every other change the condition is false.
    pub(super) fn only_path(&self) -> Option<&str> {
        match self {
            // Both sides must be true, so a path on one side is enough. With `||`, another path could make it true.
            Self::Ask(BooleanExpr::And(pair)) => pair[0].only_path().or_else(|| pair[1].only_path()),
            Self::Ask(BooleanExpr::Compare(ComparisonOp::Equal, pair)) => match &**pair {
                [Self::Fact(RuleVariable::Path), Self::Const(Const::Text(path))]
                | [Self::Const(Const::Text(path)), Self::Fact(RuleVariable::Path)] => Some(path),
                _ => None,
            },
            _ => None,
        }
    }
}

impl BooleanExpr {
    fn is_of_a_change(&self) -> bool {
        match self {
            Self::HasFact(fact) => fact.is_of_a_change(),
            Self::Has(of, _) | Self::Not(of) => of.is_of_a_change(),
            Self::And(pair) | Self::Or(pair) | Self::Compare(_, pair) | Self::Each(_, pair) => {
                pair.iter().any(Expr::is_of_a_change)
            }
        }
    }
}
