//! The `frameproof` command. Everything it does lives in the library's `cli`.

/// Gives memory back when it is freed. That of the system's C library keeps what was once needed: behind a few messages of 15 MiB, a
/// campaign of a minute had 240 MiB where 60 were in use.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    frameproof::cli::main()
}
