//! Violations of transition rules.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransitionViolation {
    /// One of the states has no value at the path of a rule.
    PathMissing,
    /// An immutable value changed.
    ImmutableChanged,
    /// Only integers are compared.
    NotAnInteger,
    Decreased,
    /// A value of an ordered enum is not one of its values.
    NotInOrder,
    /// The value of an ordered enum moved back.
    WentBack,
    /// A keyed array is not an array.
    NotAnArray,
    /// An item of a keyed array is not an object.
    NotAnObject,
    KeyMissing,
    /// A key is neither text nor a number.
    KeyUnfit,
    /// Two items have one key.
    KeyTwice,
    ItemRemoved,
    /// An item moved before another item.
    ItemMoved,
    /// A new item is before an old one.
    ItemInserted,
    /// New items are not allowed.
    ItemNotAllowed,
    /// A listed field is not a boolean.
    NotABoolean,
    /// A listed boolean changed, and not to true.
    BooleanNotToTrue,
    /// A field of an existing item is new.
    FieldAdded,
    /// A field of an existing item is missing.
    FieldRemoved,
    /// A field of an existing item changed.
    FieldChanged,
}

impl TransitionViolation {
    /// Returns the code in the guard's responses.
    pub const fn as_str(self) -> &'static str {
        self.texts().0
    }

    /// Returns a fixed sentence, which contains no value.
    pub const fn detail(self) -> &'static str {
        self.texts().1
    }

    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::PathMissing => ("path_missing", "a rule names this place, and one of the states lacks it"),
            Self::ImmutableChanged => ("immutable_changed", "the value is immutable and changed"),
            Self::NotAnInteger => ("not_an_integer", "the value must be an integer in both states"),
            Self::Decreased => ("decreased", "the integer became smaller"),
            Self::NotInOrder => ("not_in_order", "the value is not one of the ordered ones"),
            Self::WentBack => ("went_back", "the value went back in its order"),
            Self::NotAnArray => ("not_an_array", "the value must be an array in both states"),
            Self::NotAnObject => ("not_an_object", "an item must be an object"),
            Self::KeyMissing => ("key_missing", "the item has no key"),
            Self::KeyUnfit => ("key_unfit", "a key is text or a number"),
            Self::KeyTwice => ("key_twice", "two items have this key"),
            Self::ItemRemoved => ("item_removed", "the item was removed"),
            Self::ItemMoved => ("item_moved", "the item moved before one that it followed"),
            Self::ItemInserted => ("item_inserted", "a new item is before an existing one"),
            Self::ItemNotAllowed => ("item_not_allowed", "new items are not allowed here"),
            Self::NotABoolean => ("not_a_boolean", "the field must be a boolean"),
            Self::BooleanNotToTrue => ("boolean_not_to_true", "the field may only become true"),
            Self::FieldAdded => ("field_added", "an existing item has a new field"),
            Self::FieldRemoved => ("field_removed", "an existing item lost a field"),
            Self::FieldChanged => ("field_changed", "a field of an existing item changed"),
        }
    }
}
