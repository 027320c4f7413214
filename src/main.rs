//! The `countersign` binary: parses the arguments, runs the command and sets the exit code.

use std::io::{self, Write as _};
use std::process::ExitCode;

use countersign::cli::{self, args::Args};
use countersign_domain::primitives::sanitize;

/// One thread allocates audit rows and another frees them after the write. The system allocator takes locks for that
/// pattern.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match Args::read(std::env::args_os()) {
        Ok(args) => cli::run(&args, &mut io::stdout(), &mut io::stderr()).into(),
        Err(refused) => {
            // Help goes to standard output and usage errors to standard error. Usage errors repeat the arguments, which
            // can contain pasted text, so they are sanitized.
            let _ = if refused.use_stderr() {
                io::stderr().write_all(sanitize::printed(&refused.to_string()).as_bytes())
            } else {
                refused.print()
            };
            u8::try_from(refused.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
        }
    }
}
