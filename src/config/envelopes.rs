//! Reads the rotation of the secrets that nodes use to check their envelopes.

use countersign_domain::context::Rotation;

use super::settings::ConfigLayers;
use super::{ConfigCode, ConfigError};

pub(super) fn read(settings: &mut ConfigLayers) -> Result<Rotation, ConfigError> {
    let rotation = Rotation {
        // A shorter period ends before a model has answered. A longer one is no rotation.
        period: settings.secs("envelopes.hmac_period_secs", 60..=2_592_000)?,
        // An envelope that is made just before the change must still be valid on arrival.
        overlap: settings.secs("envelopes.hmac_overlap_secs", 10..=2_591_999)?,
    };
    if rotation.overlap >= rotation.period {
        let problem =
            "it must be shorter than envelopes.hmac_period_secs, because at most two secrets may be valid at a time";
        return Err(settings.refuse(ConfigCode::BadValue, "envelopes.hmac_overlap_secs", problem));
    }
    Ok(rotation)
}
