//! The `frameproof` command. Everything it does lives in the library's `cli`.

#![deny(unsafe_code)]

fn main() -> std::process::ExitCode {
    give_memory_back();
    frameproof::cli::main()
}

/// Lets large blocks of memory go back to the system as soon as they are freed. By default, glibc maps blocks of their own only until the
/// first large one was freed; from then on they lie in the heap of the thread that asks for them, of which up to 64 MiB each is kept when
/// it is free. A server that sends large messages on many connections makes that hundreds of MiB.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn give_memory_back() {
    // SAFETY: `mallopt` takes two numbers, and no other thread runs yet.
    #[expect(
        unsafe_code,
        reason = "there is no other way to say this to glibc; it is the only one in frameproof"
    )]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BLOCK);
        libc::mallopt(libc::M_TRIM_THRESHOLD, LARGE_BLOCK);
        // The heap of each thread reserves 64 MiB of addresses, which count where they are limited (`ulimit -v`).
        if rustix::process::getrlimit(rustix::process::Resource::As).current.is_some() {
            libc::mallopt(libc::M_ARENA_MAX, 1);
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_memory_back() {}

/// In bytes: glibc's own default, before it adapts it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BLOCK: std::ffi::c_int = 128 << 10;
