//! Asks for a new password on a terminal, without showing it.

use std::io::{self, BufRead, Read as _, Write as _};

use countersign_service::identity::password_hash::PASSWORD_CHARS_MIN;

use super::CliError;
use super::user::PASSWORD_BYTES_MAX;

/// Attempts to type a password, so that a slip does not lose the other answers.
const ATTEMPTS: usize = 3;

/// Asks for a password twice. Returns an error if the texts differ each time.
pub(super) fn new_password(name: &str, stdin: &mut dyn BufRead) -> Result<String, CliError> {
    for _ in 0..ATTEMPTS {
        let password = ask_hidden(
            &format!("Password for the new account {name}, {PASSWORD_CHARS_MIN} characters or more"),
            stdin,
        )?;
        if password.chars().count() < PASSWORD_CHARS_MIN {
            say("The password is too short.\n")?;
        } else if ask_hidden("The same password again", stdin)? == password {
            return Ok(password);
        } else {
            say("The two passwords differ.\n")?;
        }
    }
    Err(CliError::Given("no password was set: run the command again, or pass it with --password-stdin".to_owned()))
}

fn ask_hidden(question: &str, stdin: &mut dyn BufRead) -> Result<String, CliError> {
    let hidden = EchoOff::begin()?;
    say(&format!("{question}: "))?;
    let mut line = String::new();
    let read = stdin.take(PASSWORD_BYTES_MAX).read_line(&mut line);
    drop(hidden);
    // The line break of the reader is not shown either.
    say("\n")?;
    read.map_err(cannot_read)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Writes to standard error, because a question is no result.
fn say(text: &str) -> Result<(), CliError> {
    let mut error = io::stderr();
    Ok(write!(error, "{text}").and_then(|()| error.flush())?)
}

fn cannot_read(source: io::Error) -> CliError {
    CliError::Read { what: "the password from the terminal".to_owned(), source }
}

/// A terminal that shows nothing of the input, until this value is dropped.
struct EchoOff(#[cfg(unix)] rustix::termios::Termios);

#[cfg(unix)]
impl EchoOff {
    fn begin() -> Result<Self, CliError> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin()).map_err(|error| cannot_read(error.into()))?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        // Input that was typed before the question is dropped, because it was visible.
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent).map_err(|error| cannot_read(error.into()))?;
        Ok(Self(before))
    }
}

#[cfg(unix)]
impl Drop for EchoOff {
    fn drop(&mut self) {
        // The error is ignored, because nothing else can restore the terminal.
        let _ = rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, &self.0);
    }
}

#[cfg(not(unix))]
impl EchoOff {
    fn begin() -> Result<Self, CliError> {
        Err(CliError::Given("the password cannot be typed here: pass it with --password-stdin".to_owned()))
    }
}
