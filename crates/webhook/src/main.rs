//! The `5spot-webhook` program.

/// Returns memory to the system after a peak. It is configured in `.cargo/config.toml`.
#[cfg(feature = "allocator")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    fivespot_webhook::program::main()
}
