//! A rule's condition as it is evaluated: everything in it has been looked up and bounded when it was read.

/// An expression of the part of CEL that rules may use.
#[derive(Debug, PartialEq)]
pub(super) enum Expr {
    Const(Const),
    /// Something about the request.
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
    /// An operator that makes a value of two.
    Binary(Arithmetic, Box<[Expr; 2]>),
    Call(Function, Box<Expr>),
    List(Vec<Expr>),
    /// Something that is true or false.
    Ask(BooleanExpr),
}

/// An expression that has a truth or none, and never another value.
#[derive(Debug, PartialEq)]
pub(super) enum BooleanExpr {
    /// Whether there is such a fact.
    HasFact(RuleVariable),
    /// `has(of.name)`
    Has(Box<Expr>, String),
    /// `!it`
    Not(Box<Expr>),
    /// `a && b`
    And(Box<[Expr; 2]>),
    /// `a || b`
    Or(Box<[Expr; 2]>),
    /// How two values stand to one another.
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

/// What rules can ask about.
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
    /// The nodes of which something was committed in the thread.
    CommittedNodes,
    /// The name of the tool that is called.
    ToolName,
    ToolArguments,
    /// The tokens that the request took.
    Tokens,
    Cost,
}

impl RuleVariable {
    /// Whether a request can lack it, so that `has` is a question.
    pub(super) const fn can_be_missing(self) -> bool {
        matches!(self, Self::Before | Self::After | Self::ToolName | Self::ToolArguments | Self::Tokens | Self::Cost)
    }

    /// Whether it is a fact of one change, so that the rule is asked for each.
    pub(super) const fn is_of_a_change(self) -> bool {
        matches!(self, Self::Path | Self::Before | Self::After)
    }
}

/// An operator that asks about its sides. Both are evaluated.
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

/// An operator that makes something of its sides.
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

/// How many items must satisfy the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantifier {
    All,
    Exists,
    ExistsOne,
}

impl Expr {
    /// Whether it asks about a change, so that it has to be asked for each.
    pub(super) fn is_of_a_change(&self) -> bool {
        match self {
            Self::Fact(fact) => fact.is_of_a_change(),
            Self::Const(_) | Self::Local(_) => false,
            Self::Member(of, _) | Self::Minus(of) | Self::Call(_, of) => of.is_of_a_change(),
            Self::Item(pair) | Self::Binary(_, pair) => pair.iter().any(Self::is_of_a_change),
            Self::If(three) => three.iter().any(Self::is_of_a_change),
            Self::List(items) => items.iter().any(Self::is_of_a_change),
            Self::Ask(question) => question.is_of_a_change(),
        }
    }

    /// The one path that a change must have for this to hold at all: `change.path == '…'` among what is joined by
    /// `&&` at the top. For every other change the whole is false, whatever the rest would be.
    pub(super) fn only_path(&self) -> Option<&str> {
        match self {
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
