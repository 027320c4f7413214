//! What is wrong with a value, in words that no value gets into.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use crate::domain::json::pointer::Pointer;

/// One thing that a schema refuses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::domain::policy) struct Fault {
    /// Where in the value.
    pub(in crate::domain::policy) pointer: Pointer,
    /// What is wrong: one fixed sentence per keyword.
    pub(in crate::domain::policy) detail: &'static str,
}

impl Fault {
    /// The faults of one error: an error about several members is told at each of them.
    pub(super) fn all_of(error: &ValidationError<'_>) -> Vec<Self> {
        let at = Pointer::try_from(error.instance_path().as_str()).unwrap_or_else(|_| Pointer::root());
        let detail = detail(error.kind());
        let members: Vec<&str> = match error.kind() {
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                unexpected.iter().map(String::as_str).collect()
            }
            Kind::Required { property: Value::String(name) } => vec![name],
            Kind::PropertyNames { error } => error.instance().as_str().into_iter().collect(),
            _ => Vec::new(),
        };
        if members.is_empty() {
            return vec![Self { pointer: at, detail }];
        }
        members.into_iter().map(|name| Self { pointer: at.child(name), detail }).collect()
    }

    /// The value is refused, and nothing says why.
    pub(super) fn unexplained() -> Self {
        Self { pointer: Pointer::root(), detail: "the value does not fit the schema" }
    }
}

fn detail(kind: &Kind) -> &'static str {
    match kind {
        Kind::AdditionalItems { .. } | Kind::UnevaluatedItems { .. } => {
            "the list has items that the schema does not know"
        }
        Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. } => {
            "the schema does not know this member"
        }
        Kind::AnyOf { .. } => "the value fits none of the forms that the schema offers",
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } | Kind::Pattern { .. } => {
            "the text does not match the schema's pattern"
        }
        Kind::Constant { .. } => "the value is not the one that the schema fixes",
        Kind::Contains => "the list lacks an item that the schema asks for",
        Kind::ContentEncoding { .. } | Kind::FromUtf8 { .. } => "the text is not encoded as the schema says",
        Kind::ContentMediaType { .. } => "the text is not of the kind that the schema says",
        Kind::Custom { .. } => "the value does not fit the schema",
        Kind::Enum { .. } => "the value is not one of those that the schema lists",
        Kind::ExclusiveMaximum { .. } | Kind::Maximum { .. } => "the number is above the schema's maximum",
        Kind::ExclusiveMinimum { .. } | Kind::Minimum { .. } => "the number is below the schema's minimum",
        Kind::FalseSchema => "the schema admits nothing here",
        Kind::Format { .. } => "the text is not of the schema's format",
        Kind::MaxItems { .. } => "the list is longer than the schema admits",
        Kind::MaxLength { .. } => "the text is longer than the schema admits",
        Kind::MaxProperties { .. } => "the object has more members than the schema admits",
        Kind::MinItems { .. } => "the list is shorter than the schema asks for",
        Kind::MinLength { .. } => "the text is shorter than the schema asks for",
        Kind::MinProperties { .. } => "the object has fewer members than the schema asks for",
        Kind::MultipleOf { .. } => "the number is no multiple of the schema's step",
        Kind::Not { .. } => "the value has a form that the schema excludes",
        Kind::OneOfMultipleValid { .. } => "the value fits more than one form, and the schema asks for exactly one",
        Kind::OneOfNotValid { .. } => "the value fits none of the forms, and the schema asks for exactly one",
        Kind::PropertyNames { .. } => "the schema does not admit a member of this name",
        Kind::Required { .. } => "a member that the schema asks for is missing",
        Kind::Type { .. } => "the value is not of the type that the schema asks for",
        Kind::UniqueItems => "the list has equal items, and the schema asks for different ones",
        Kind::Referencing(_) => "the schema could not be applied",
    }
}
