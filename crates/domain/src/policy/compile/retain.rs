//! Reads `[retain]`: how long states stay in the database, and when the values of older ones are erased.

use super::super::bounds;
use super::super::error::{PolicyCode, PolicyError};
use super::super::toml_reader::{TomlItem, TomlSection};
use crate::threads::archive::RetentionPolicy;

pub(super) const KEYS: &[&str] = &["versions", "days", "erase_after_days"];

pub(super) fn read_retain(root: &TomlSection<'_>) -> Result<Option<RetentionPolicy>, PolicyError> {
    let Some(item) = root.get("retain") else { return Ok(None) };
    let section = item.section()?;
    section.expect_keys(KEYS)?;
    let at_least_one = |key: &str, max| section.get(key).map(|it| read_count(&it, max)).transpose();
    let retain = RetentionPolicy {
        versions: at_least_one("versions", bounds::RETAINED_VERSIONS_MAX)?,
        days: at_least_one("days", bounds::RETAINED_DAYS_MAX)?,
        erase_after_days: at_least_one("erase_after_days", bounds::RETAINED_DAYS_MAX)?,
    };
    // Only states that have left the database are erased, so `erase_after_days` alone has no effect.
    if retain.versions.is_none() && retain.days.is_none() {
        let message = "`retain` needs `versions`, `days` or both: how long states stay in the database";
        return Err(item.error(PolicyCode::Missing, message));
    }
    match (retain.days, retain.erase_after_days) {
        (Some(days), Some(erased)) if erased < days => Err(item.error(
            PolicyCode::Contradiction,
            "`retain.erase_after_days` is less than `retain.days`: what stays in the database is not erased",
        )),
        _ => Ok(Some(retain)),
    }
}

fn read_count(item: &TomlItem<'_>, max: u64) -> Result<u64, PolicyError> {
    match item.whole(max)? {
        0 => Err(item.error(PolicyCode::BadValue, format!("`{}` must be a number from 1 to {max}", item.name()))),
        count => Ok(count),
    }
}
