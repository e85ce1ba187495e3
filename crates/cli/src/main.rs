//! `5spot`.

fn main() -> std::process::ExitCode {
    fivespot_cli::main()
}
