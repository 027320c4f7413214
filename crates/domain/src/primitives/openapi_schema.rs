//! Describes text formats in OpenAPI: a pattern, a length and an example. Only with the feature `openapi`.

#[cfg(feature = "openapi")]
use utoipa::openapi::RefOr;
#[cfg(feature = "openapi")]
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};

#[cfg(feature = "openapi")]
#[derive(Clone, Copy, Debug)]
pub struct StringFormat {
    pub what: &'static str,
    /// Pattern in the syntax of ECMA 262.
    pub pattern: &'static str,
    /// Minimum and maximum number of characters.
    pub chars: (usize, usize),
    pub example: &'static str,
}

#[cfg(feature = "openapi")]
impl StringFormat {
    pub fn schema(self) -> RefOr<Schema> {
        let text = ObjectBuilder::new()
            .schema_type(SchemaType::new(Type::String))
            .description(Some(self.what))
            .pattern(Some(self.pattern))
            .min_length(Some(self.chars.0))
            .max_length(Some(self.chars.1))
            .examples([self.example]);
        RefOr::T(Schema::Object(text.build()))
    }
}

#[cfg(feature = "openapi")]
pub fn words(all: impl IntoIterator<Item = &'static str>) -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).enum_values(Some(all));
    RefOr::T(Schema::Object(text.build()))
}

/// Gives a type the schema of a format, under its own name.
macro_rules! has_form {
    ($type:ident, $form:expr) => {
        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $form.schema()
            }
        }
        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $type {
            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
        }
    };
}
pub(crate) use has_form;

/// Gives a type the schema of a text that is one of some words.
macro_rules! one_of_words {
    ($type:ident, $words:expr) => {
        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $crate::primitives::openapi_schema::words($words)
            }
        }
        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $type {}
    };
}
pub(crate) use one_of_words;
