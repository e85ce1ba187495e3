//! The `5spot` program.

use tikv_jemallocator::Jemalloc;

/// Returns memory to the system after a peak. It is configured in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> std::process::ExitCode {
    fivespot_cli::main()
}
