//! Finds the known name that an unknown name was probably meant to be.

use std::mem;

/// Longer names are not compared, so that the work stays small.
const NAME_CHARS_MAX: usize = 128;

/// Returns the known name with the fewest typing errors, if it is close enough to be meant. The first one is preferred.
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let typed: Vec<char> = name.chars().take(NAME_CHARS_MAX).collect();
    // Two errors in a short name can make any other short name.
    let most = (typed.len() / 3).clamp(1, 4);
    let distance = |it: &str| edits(&typed, &it.chars().take(NAME_CHARS_MAX).collect::<Vec<_>>());
    let close = known.into_iter().map(|it| (distance(it), it)).filter(|(edits, _)| *edits <= most);
    close.min_by_key(|(edits, _)| *edits).map(|(_, it)| it)
}

/// Returns how many typing errors make one name the other: an inserted, removed or replaced character, or two swapped
/// ones.
fn edits(one: &[char], other: &[char]) -> usize {
    let (mut before, mut above): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=other.len()).collect());
    for (row, letter) in one.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, wanted) in other.iter().enumerate() {
            let replaced = above[column] + usize::from(letter != wanted);
            let mut least = replaced.min(above[column + 1] + 1).min(current[column] + 1);
            let is_swapped =
                row > 0 && column > 0 && one[row - 1] == *wanted && *letter == other[column - 1] && letter != wanted;
            if is_swapped {
                least = least.min(before[column - 1] + 1);
            }
            current.push(least);
        }
        before = mem::replace(&mut above, current);
    }
    above[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_name_has_the_fewest_typing_errors() {
        let known = ["refund", "refunds", "amount", "note"];
        for (typed, meant) in [
            ("refnd", Some("refund")),
            ("refunt", Some("refund")),
            ("amuont", Some("amount")),
            ("noet", Some("note")),
            ("notes", Some("note")),
            ("customer", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, known), meant, "{typed}");
        }
    }

    #[test]
    fn long_names_are_compared_in_bounded_time() {
        let long = "a".repeat(100_000);
        assert_eq!(nearest(&long, [long.as_str()]), Some(long.as_str()));
    }
}
