//! `5spot-reclaim-agent`.

fn main() -> std::process::ExitCode {
    fivespot_agent::command::main()
}
