//! A rule's condition as it is evaluated: everything in it has been looked up and bounded when it was read.

/// An expression of the part of CEL that rules may use.
#[derive(Debug, PartialEq)]
pub(super) enum Expr {
    /// A constant.
    Const(Const),
    /// Something about the request.
    Fact(Fact),
    /// Whether there is such a fact.
    HasFact(Fact),
    /// The variable of a quantifier; the outermost is 0.
    Local(usize),
    /// `of.name`
    Member(Box<Expr>, String),
    /// `has(of.name)`
    Has(Box<Expr>, String),
    /// `of[index]`
    Item(Box<[Expr; 2]>),
    /// `!it`
    Not(Box<Expr>),
    /// `-it`
    Minus(Box<Expr>),
    /// `a && b`
    And(Box<[Expr; 2]>),
    /// `a || b`
    Or(Box<[Expr; 2]>),
    /// `a ? b : c`
    If(Box<[Expr; 3]>),
    /// Any other operator with two sides.
    Binary(Operator, Box<[Expr; 2]>),
    /// A function of one value.
    Call(Function, Box<Expr>),
    /// A list as written.
    List(Vec<Expr>),
    /// `over.all(x, body)` and its like.
    Each(Quantifier, Box<[Expr; 2]>),
}

/// A constant.
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
pub(super) enum Fact {
    /// The state after.
    Object,
    /// The state before.
    OldObject,
    /// Where one leaf differs.
    Path,
    /// That leaf before.
    Before,
    /// That leaf after.
    After,
    /// The node that asks.
    Node,
    /// Who asks, by id.
    PrincipalId,
    /// Whose it is.
    PrincipalOwner,
    /// The nodes of which something was committed in the thread.
    CommittedNodes,
    /// The name of the tool that is called.
    ToolName,
    /// What it is called with.
    ToolArguments,
    /// The tokens that the request took.
    Tokens,
    /// What it cost.
    Cost,
}

impl Fact {
    /// Whether a request can lack it, so that `has` is a question.
    pub(super) const fn can_be_missing(self) -> bool {
        matches!(self, Self::Before | Self::After | Self::ToolName | Self::ToolArguments | Self::Tokens | Self::Cost)
    }

    /// Whether it is a fact of one change, so that the rule is asked for each.
    pub(super) const fn is_of_a_change(self) -> bool {
        matches!(self, Self::Path | Self::Before | Self::After)
    }
}

/// An operator whose sides are both evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Contains,
    StartsWith,
    EndsWith,
}

/// A function of one value.
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
    /// Whether some part of it satisfies the predicate.
    pub(super) fn any(&self, is: &mut impl FnMut(&Self) -> bool) -> bool {
        if is(self) {
            return true;
        }
        match self {
            Self::Const(_) | Self::Fact(_) | Self::HasFact(_) | Self::Local(_) => false,
            Self::Member(of, _) | Self::Has(of, _) | Self::Not(of) | Self::Minus(of) | Self::Call(_, of) => of.any(is),
            Self::Item(pair) | Self::And(pair) | Self::Or(pair) | Self::Binary(_, pair) | Self::Each(_, pair) => {
                pair.iter().any(|it| it.any(is))
            }
            Self::If(three) => three.iter().any(|it| it.any(is)),
            Self::List(items) => items.iter().any(|it| it.any(is)),
        }
    }

    /// The one path that a change must have for this to hold at all: `change.path == '…'` among what is joined by
    /// `&&` at the top. For every other change the whole is false, whatever the rest would be.
    pub(super) fn only_path(&self) -> Option<&str> {
        match self {
            Self::And(pair) => pair[0].only_path().or_else(|| pair[1].only_path()),
            Self::Binary(Operator::Equal, pair) => match &**pair {
                [Self::Fact(Fact::Path), Self::Const(Const::Text(path))]
                | [Self::Const(Const::Text(path)), Self::Fact(Fact::Path)] => Some(path),
                _ => None,
            },
            _ => None,
        }
    }
}
