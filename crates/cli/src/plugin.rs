//! `kubectl 5spot`: the same command line, in a program with the name of a kubectl plugin.

fn main() -> std::process::ExitCode {
    fivespot_cli::main()
}
