//! `kubectl 5spot`: the same command line under the name that kubectl looks for.

fn main() -> std::process::ExitCode {
    fivespot_cli::main()
}
