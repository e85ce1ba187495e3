//! `5spot`.

use tikv_jemallocator::Jemalloc;

/// Gives memory back that an edge has needed; how it is set up is in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> std::process::ExitCode {
    fivespot_cli::main()
}
