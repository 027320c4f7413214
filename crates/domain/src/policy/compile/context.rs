//! Reads `[context]` and the view of each node: required paths, priorities and the maximum size.

use super::super::bounds;
use super::super::error::{PolicyCode, PolicyError};
use super::super::toml_reader::{TomlItem, TomlSection};
use super::read_schema;
use super::transitions::read_place;
use crate::context::{Encoding, InputSchema};
use crate::json::pointer::Pointer;
use crate::policy::context_rules::ContextRules;
use crate::policy::pattern_set::Patterns;
use crate::policy::policy_source::PolicySource;
use crate::schema::Openness;

pub(super) const KEYS: &[&str] = &["encoding"];
pub(super) const STEPS_KEYS: &[&str] = &["attempts"];

pub(super) fn read_encoding(root: &TomlSection<'_>) -> Result<Encoding, PolicyError> {
    let Some(item) = root.get("context") else { return Ok(Encoding::default()) };
    let section = item.section()?;
    section.expect_keys(KEYS)?;
    let Some(item) = section.get("encoding") else { return Ok(Encoding::default()) };
    let name = item.text()?;
    Encoding::ALL.iter().copied().find(|it| it.as_str() == name).ok_or_else(|| {
        let known: Vec<&str> = Encoding::ALL.iter().map(|it| it.as_str()).collect();
        item.error(PolicyCode::BadValue, format!("`{}` must be one of {}", item.name(), known.join(", ")))
    })
}

/// Reads `[steps]`: the maximum number of attempts.
pub(super) fn read_step_attempts(root: &TomlSection<'_>) -> Result<u32, PolicyError> {
    let Some(item) = root.get("steps") else { return Ok(bounds::ATTEMPTS_DEFAULT) };
    let section = item.section()?;
    section.expect_keys(STEPS_KEYS)?;
    section.get("attempts").map_or(Ok(bounds::ATTEMPTS_DEFAULT), |item| item.count(bounds::ATTEMPTS))
}

pub(super) fn read_given(
    section: &TomlSection<'_>,
    reads: &Patterns,
    source: &PolicySource,
) -> Result<ContextRules, PolicyError> {
    let max_tokens = match section.get("max_tokens") {
        None => None,
        Some(item) => match item.whole(bounds::GIVEN_TOKENS_MAX)? {
            // Even an empty view has tokens, so the node would never receive one.
            0 => return Err(item.error(PolicyCode::BadValue, format!("`{}`: nothing is 0 tokens", item.name()))),
            tokens => Some(tokens),
        },
    };
    let priority = read_places(section, "priority", reads)?;
    match section.get("priority") {
        // Paths are dropped only to meet `max_tokens`, so a priority without it is a mistake of the author.
        Some(item) if max_tokens.is_none() => Err(item.error(
            PolicyCode::Contradiction,
            format!("`{}` says nothing without `max_tokens`: nothing would ever have to go", item.name()),
        )),
        _ => Ok(ContextRules {
            max_tokens,
            priority,
            requires: read_places(section, "requires", reads)?,
            receives: read_receives(section, source)?,
        }),
    }
}

/// The schema is closed, like the schema of what a node sends: it must name every possible member.
fn read_receives(section: &TomlSection<'_>, source: &PolicySource) -> Result<Option<InputSchema>, PolicyError> {
    let Some(item) = section.get("receives") else { return Ok(None) };
    read_schema(&item, source, Openness::Closed).map(|it| Some(InputSchema::of(it)))
}

/// Reads a list of unique paths that the node reads.
fn read_places(section: &TomlSection<'_>, key: &str, reads: &Patterns) -> Result<Vec<Pointer>, PolicyError> {
    let Some(list) = section.get(key) else { return Ok(Vec::new()) };
    let mut places: Vec<Pointer> = Vec::new();
    for item in list.items(bounds::PLACES_MAX)? {
        let bad = |code, why: &str| item.error(code, format!("`{}`: {why}", item.name()));
        let place = read_one(&item)?;
        if !reads.covers(&place) {
            return Err(bad(
                PolicyCode::Contradiction,
                "the node's `reads` do not cover it, so the node never receives it",
            ));
        }
        // A path that is in `priority` twice would have two ranks.
        if places.contains(&place) {
            return Err(bad(PolicyCode::BadValue, "the list already has it: remove it"));
        }
        places.push(place);
    }
    Ok(places)
}

fn read_one(item: &TomlItem<'_>) -> Result<Pointer, PolicyError> {
    let bad = |why: String| item.error(PolicyCode::BadValue, format!("`{}`: {why}", item.name()));
    let text = item.text()?;
    if text.len() > bounds::PLACE_BYTES_MAX {
        return Err(bad(format!("a place has at most {} bytes", bounds::PLACE_BYTES_MAX)));
    }
    // The paths have the syntax of transition rules, because both name exactly one path.
    read_place(text).map_err(bad)
}
