//! Describes text formats in OpenAPI: a pattern, a length and an example.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};

#[derive(Clone, Copy, Debug)]
pub struct StringFormat {
    pub what: &'static str,
    /// Pattern in the syntax of ECMA 262.
    pub pattern: &'static str,
    /// Minimum and maximum number of characters.
    pub chars: (usize, usize),
    pub example: &'static str,
}

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

pub fn words(all: impl IntoIterator<Item = &'static str>) -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).enum_values(Some(all));
    RefOr::T(Schema::Object(text.build()))
}

/// Gives a type the schema of a format, under its own name.
macro_rules! has_form {
    ($type:ident, $form:expr) => {
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $form.schema()
            }
        }
        impl utoipa::ToSchema for $type {
            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
        }
    };
}
pub(crate) use has_form;
