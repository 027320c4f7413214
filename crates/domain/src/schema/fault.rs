//! Describes schema violations in codes and fixed sentences. No sentence contains a value.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use super::pattern;
use crate::json::pointer::Pointer;

/// One violation of a schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SchemaViolation {
    pub(crate) pointer: Pointer,
    pub(crate) kind: SchemaViolationKind,
}

impl SchemaViolation {
    /// Returns the violations of one error. An error about several members is reported at each of them.
    pub(super) fn all_of(error: &ValidationError<'_>) -> impl Iterator<Item = Self> {
        // The validator writes valid pointers, and a violation must not be lost if one is not.
        let at = Pointer::try_from(error.instance_path().as_str()).unwrap_or_else(|_| Pointer::root());
        let kind = SchemaViolationKind::of(error.kind());
        let members: Vec<&str> = match error.kind() {
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                unexpected.iter().map(String::as_str).collect()
            }
            // Reported at the missing member, as in the guard's own dialect.
            Kind::Required { property: Value::String(name) } => vec![name],
            // The inner error is about the name itself, so its instance is the name.
            Kind::PropertyNames { error } => error.instance().as_str().into_iter().collect(),
            _ => Vec::new(),
        };
        let itself = members.is_empty().then(|| at.clone());
        itself
            .into_iter()
            .chain(members.into_iter().map(move |name| at.child(name)))
            .map(move |pointer| Self { pointer, kind })
    }

    /// The value is invalid, for an unknown reason.
    pub(super) fn unexplained() -> Self {
        Self { pointer: Pointer::root(), kind: SchemaViolationKind::Unfit }
    }

    /// The check was stopped, so the value is rejected.
    pub(super) fn too_costly() -> Self {
        Self { pointer: Pointer::root(), kind: SchemaViolationKind::TooCostly }
    }
}

/// Kind of a schema violation, for every dialect.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SchemaViolationKind {
    /// The list has more items than the schema knows.
    ItemUnknown,
    /// The schema does not know the member.
    MemberUnknown,
    /// A required member is missing.
    MemberMissing,
    /// No member may have this name.
    NameUnfit,
    /// The value is of another type.
    WrongType,
    /// The value is not one of those listed.
    NotListed,
    /// The value is not the one that is fixed.
    NotTheConstant,
    /// The value fits none of several forms.
    NoForm,
    /// The value fits none of several forms, of which it must fit one.
    NotOneForm,
    /// The value fits several forms, of which it must fit one.
    SeveralForms,
    /// The value has a form that it must not have.
    FormExcluded,
    NothingAdmitted,
    /// The text does not match the pattern.
    PatternUnmatched,
    /// The text is not of the format.
    FormatUnfit,
    /// The text is not encoded as asked.
    EncodingUnfit,
    /// The text is of another kind.
    MediaTypeUnfit,
    TextTooLong,
    TextTooShort,
    AboveMaximum,
    BelowMinimum,
    /// The number is no multiple.
    NotAMultiple,
    /// An item that the list must have is missing.
    ItemMissing,
    /// Two items are equal.
    ItemsEqual,
    TooManyItems,
    TooFewItems,
    /// The object has too many members.
    TooManyMembers,
    /// The object has too few members.
    TooFewMembers,
    /// The value has more levels than a schema of the guard's dialect describes.
    TooManyLevels,
    /// The schema could not be applied.
    NotApplied,
    /// The value is invalid, for an unknown reason.
    Unfit,
    /// The check takes more steps than it may.
    TooCostly,
}

impl SchemaViolationKind {
    /// Returns the code in responses.
    pub const fn as_str(self) -> &'static str {
        self.texts().0
    }

    /// Returns a fixed sentence, which contains no value.
    pub const fn detail(self) -> &'static str {
        self.texts().1
    }

    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::ItemUnknown => ("item_unknown", "the list has items that the schema does not know"),
            Self::MemberUnknown => ("member_unknown", "the schema does not know this member"),
            Self::MemberMissing => ("member_missing", "a member that the schema asks for is missing"),
            Self::NameUnfit => ("name_unfit", "the schema does not admit a member of this name"),
            Self::WrongType => ("wrong_type", "the value is not of the type that the schema asks for"),
            Self::NotListed => ("not_listed", "the value is not one of those that the schema lists"),
            Self::NotTheConstant => ("not_the_constant", "the value is not the one that the schema fixes"),
            Self::NoForm => ("no_form", "the value fits none of the forms that the schema offers"),
            Self::NotOneForm => {
                ("not_one_form", "the value fits none of the forms, and the schema asks for exactly one")
            }
            Self::SeveralForms => {
                ("several_forms", "the value fits more than one form, and the schema asks for exactly one")
            }
            Self::FormExcluded => ("form_excluded", "the value has a form that the schema excludes"),
            Self::NothingAdmitted => ("nothing_admitted", "the schema admits nothing here"),
            Self::PatternUnmatched => ("pattern_unmatched", "the text does not match the schema's pattern"),
            Self::FormatUnfit => ("format_unfit", "the text is not of the schema's format"),
            Self::EncodingUnfit => ("encoding_unfit", "the text is not encoded as the schema says"),
            Self::MediaTypeUnfit => ("media_type_unfit", "the text is not of the kind that the schema says"),
            Self::TextTooLong => ("text_too_long", "the text is longer than the schema admits"),
            Self::TextTooShort => ("text_too_short", "the text is shorter than the schema asks for"),
            Self::AboveMaximum => ("above_maximum", "the number is above the schema's maximum"),
            Self::BelowMinimum => ("below_minimum", "the number is below the schema's minimum"),
            Self::NotAMultiple => ("not_a_multiple", "the number is no multiple of the schema's step"),
            Self::ItemMissing => ("item_missing", "the list lacks an item that the schema asks for"),
            Self::ItemsEqual => ("items_equal", "the list has equal items, and the schema asks for different ones"),
            Self::TooManyItems => ("too_many_items", "the list is longer than the schema admits"),
            Self::TooFewItems => ("too_few_items", "the list is shorter than the schema asks for"),
            Self::TooManyMembers => ("too_many_members", "the object has more members than the schema admits"),
            Self::TooFewMembers => ("too_few_members", "the object has fewer members than the schema asks for"),
            Self::TooManyLevels => ("too_many_levels", "the schema describes 64 levels, and the value is below them"),
            Self::NotApplied => ("schema_not_applied", "the schema could not be applied"),
            Self::Unfit => ("schema_unfit", "the value does not fit the schema"),
            Self::TooCostly => (
                "schema_too_costly",
                "checking the value against the schema takes more steps than one check may: simplify the schema, or send less",
            ),
        }
    }

    fn of(kind: &Kind) -> Self {
        match kind {
            Kind::AdditionalItems { .. } | Kind::UnevaluatedItems { .. } => Self::ItemUnknown,
            Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. } => Self::MemberUnknown,
            Kind::Required { .. } => Self::MemberMissing,
            Kind::PropertyNames { .. } => Self::NameUnfit,
            Kind::Type { .. } => Self::WrongType,
            Kind::Enum { .. } => Self::NotListed,
            Kind::Constant { .. } => Self::NotTheConstant,
            Kind::AnyOf { .. } => Self::NoForm,
            Kind::OneOfNotValid { .. } => Self::NotOneForm,
            Kind::OneOfMultipleValid { .. } => Self::SeveralForms,
            Kind::Not { .. } => Self::FormExcluded,
            Kind::FalseSchema => Self::NothingAdmitted,
            // An undecided pattern counts as unmatched, so a value never passes because of it.
            Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } | Kind::Pattern { .. } => {
                Self::PatternUnmatched
            }
            Kind::Format { .. } => Self::FormatUnfit,
            Kind::ContentEncoding { .. } | Kind::FromUtf8 { .. } => Self::EncodingUnfit,
            Kind::ContentMediaType { .. } => Self::MediaTypeUnfit,
            Kind::MaxLength { .. } => Self::TextTooLong,
            Kind::MinLength { .. } => Self::TextTooShort,
            Kind::ExclusiveMaximum { .. } | Kind::Maximum { .. } => Self::AboveMaximum,
            Kind::ExclusiveMinimum { .. } | Kind::Minimum { .. } => Self::BelowMinimum,
            Kind::MultipleOf { .. } => Self::NotAMultiple,
            Kind::Contains => Self::ItemMissing,
            Kind::UniqueItems => Self::ItemsEqual,
            Kind::MaxItems { .. } => Self::TooManyItems,
            Kind::MinItems { .. } => Self::TooFewItems,
            Kind::MaxProperties { .. } => Self::TooManyMembers,
            Kind::MinProperties { .. } => Self::TooFewMembers,
            Kind::Referencing(_) => Self::NotApplied,
            // The gateway replaces the validator's `pattern`, and the replacement has custom errors.
            Kind::Custom { keyword, .. } if keyword == pattern::KEYWORD => Self::PatternUnmatched,
            Kind::Custom { .. } => Self::Unfit,
        }
    }
}
