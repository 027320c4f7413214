//! The binary: arguments, wiring, exit code.

use std::io;
use std::process::ExitCode;

use countersign::cli::{self, args::Args};

fn main() -> ExitCode {
    match Args::read(std::env::args_os()) {
        Ok(args) => cli::run(&args, &mut io::stdout(), &mut io::stderr()).into(),
        Err(refused) => {
            // Help goes to standard output, a wrong line to standard error.
            let _ = refused.print();
            u8::try_from(refused.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
        }
    }
}
