//! The `5spot-controller` program, which the Deployment runs.

/// Returns memory to the system after a peak. It is configured in `.cargo/config.toml`.
#[cfg(feature = "allocator")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    fivespot_controller::program::main()
}
