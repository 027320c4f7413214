//! How the secrets change by which nodes check their envelopes.

use super::settings::ConfigLayers;
use super::{ConfigCode, ConfigError};
use crate::domain::context::Rotation;

pub(super) fn read(settings: &mut ConfigLayers) -> Result<Rotation, ConfigError> {
    let rotation = Rotation {
        // Shorter ones are over before a model has answered; longer ones are no rotation.
        period: settings.secs("envelopes.hmac_period_secs", 60..=2_592_000)?,
        // What was made a moment before the change must still be good where it arrives.
        overlap: settings.secs("envelopes.hmac_overlap_secs", 10..=2_591_999)?,
    };
    if rotation.overlap >= rotation.period {
        let problem =
            "it must be shorter than envelopes.hmac_period_secs, because at most two secrets may be valid at a time";
        return Err(settings.refuse(ConfigCode::BadValue, "envelopes.hmac_overlap_secs", problem));
    }
    Ok(rotation)
}
