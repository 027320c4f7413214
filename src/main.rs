//! The binary: arguments, wiring, exit code.

use std::io::{self, Write as _};
use std::process::ExitCode;

use countersign::cli::{self, args::Args};
use countersign::domain::primitives::sanitize;

/// What one thread makes and another frees, as rows on their way to the disk are, costs the system's allocator its locks.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match Args::read(std::env::args_os()) {
        Ok(args) => cli::run(&args, &mut io::stdout(), &mut io::stderr()).into(),
        Err(refused) => {
            // Help goes to standard output, a wrong line to standard error: what somebody pasted may stand in that.
            let _ = if refused.use_stderr() {
                io::stderr().write_all(sanitize::printed(&refused.to_string()).as_bytes())
            } else {
                refused.print()
            };
            u8::try_from(refused.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
        }
    }
}
