//! Enums whose variants have names. Each name is written once, so JSON and `as_str` cannot differ.

/// Defines an enum with a name for each variant. `as_str` returns the name, and `ALL` has the variants.
macro_rules! named_enum {
    ($(#[$attr:meta])* $vis:vis enum $name:ident { $($(#[$of:meta])* $variant:ident = $text:tt,)* }) => {
        $(#[$attr])*
        $vis enum $name { $($(#[$of])* $variant,)* }

        impl $name {
            /// All variants, in this order.
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$variant),*];

            /// Returns the name of the variant.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}
pub(crate) use named_enum;

/// Defines an enum with a name for each variant. `as_str` and JSON have the name.
macro_rules! named_json_enum {
    ($(#[$attr:meta])* $vis:vis enum $name:ident { $($(#[$of:meta])* $variant:ident = $text:tt,)* }) => {
        $crate::primitives::named_enum::named_enum! {
            $(#[$attr])*
            $vis enum $name { $($(#[$of])* #[serde(rename = $text)] $variant = $text,)* }
        }
    };
}
pub(crate) use named_json_enum;

/// Defines an enum by one of the macros above, with a fixed sentence for each variant. `detail` returns the sentence.
macro_rules! described_enum {
    ($names:ident: $(#[$attr:meta])* $vis:vis enum $name:ident {
        $($(#[$of:meta])* $variant:ident = $text:tt: $detail:tt,)*
    }) => {
        $crate::primitives::named_enum::$names! {
            $(#[$attr])*
            $vis enum $name { $($(#[$of])* $variant = $text,)* }
        }

        impl $name {
            /// Returns a fixed sentence, which contains no value.
            pub const fn detail(self) -> &'static str {
                match self { $(Self::$variant => $detail,)* }
            }
        }
    };
}
pub(crate) use described_enum;
