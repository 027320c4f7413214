//! Compares names that look the same.

/// Returns the skeleton of a text by UTS 39. Two texts that look the same have the same skeleton.
pub fn skeleton(text: &str) -> String {
    unicode_security::skeleton(text).collect()
}

/// Returns whether a person could take one name for the other: they look the same, or differ in capitals only.
pub fn alike(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let small = |name: &str| shape(&name.to_lowercase());
    // A character beyond ASCII can have another skeleton in lower case, so both are compared.
    shape(one) == shape(other) || (!(one.is_ascii() && other.is_ascii()) && small(one) == small(other))
}

/// Returns the skeleton of a name in lower case. `1`, `i` and `l` become one letter, and so do `0` and `o`, because
/// they look the same in lists. `M` and `m` are equal only in lower case.
fn shape(name: &str) -> String {
    if name.bytes().all(|it| it.is_ascii_alphanumeric() || b"._:-@".contains(&it)) {
        return shape_of_ascii(name);
    }
    let small = skeleton(name).to_lowercase();
    // Lower case can turn a character into one with a skeleton of its own.
    let letters = skeleton(&small).to_lowercase();
    letters.chars().map(joined).collect()
}

/// The same without the tables, which most names need not: every vote asks for it.
fn shape_of_ascii(name: &str) -> String {
    // UTS 39 gives `m` the skeleton `rn`, and the result must equal that of the tables.
    name.to_ascii_lowercase().replace('m', "rn").chars().map(joined).collect()
}

const fn joined(letter: char) -> char {
    match letter {
        '0' => 'o',
        '1' | 'i' => 'l',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{joined, shape_of_ascii, skeleton};

    #[test]
    fn names_of_ascii_have_the_shape_that_the_tables_give() {
        for byte in (b'0'..=b'z').chain(*b"._:-@").filter(|it| it.is_ascii_alphanumeric() || b"._:-@".contains(it)) {
            let name = format!("x{}y", char::from(byte));
            let by_tables = skeleton(&skeleton(&name).to_lowercase()).to_lowercase();
            assert_eq!(shape_of_ascii(&name), by_tables.chars().map(joined).collect::<String>(), "{name}");
        }
    }
}
