//! Why a call was not run, in words for the model.

use crate::approvals::ApprovalFailure;

pub const UNDECIDED: &str = "No reviewer decided in time, so the call was not run.";
/// The note of a call that its client cancelled before it ran.
pub const CANCELLED: &str = "cancelled by the client before the call ran";
pub const UNAVAILABLE: &str = "The approval gateway cannot be reached, so the call was not run. Tell your user.";

pub const CHANGED: &str = "The server has changed the definition of the tool since the review, so the call was not run. List the tools, and call \
    the tool again.";

/// Returns the words about a denied call.
pub fn denial(note: Option<&str>) -> String {
    match note {
        Some(note) => format!("This call was denied and was not run: {note}"),
        None => "This call was denied and was not run.".to_owned(),
    }
}

/// Returns the words about a failure of the gateway.
pub fn failure(failure: &ApprovalFailure) -> String {
    match failure {
        ApprovalFailure::Refused { message, .. } => {
            format!("The approval gateway refused this call, so it was not run: {message}")
        }
        ApprovalFailure::Unavailable => UNAVAILABLE.to_owned(),
    }
}
