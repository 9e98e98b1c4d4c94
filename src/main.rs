//! The `frameproof` command. Everything it does lives in the library's `cli`.

#![deny(unsafe_code)]

fn main() -> std::process::ExitCode {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::give_memory_back();
    frameproof::cli::main()
}

/// What is said to glibc's allocator.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use std::ffi::c_int;
    use std::thread::Builder;
    use std::time::Duration;

    use rustix::process::{Resource, getrlimit};

    /// In bytes: glibc's own default, before it adapts it.
    const LARGE_BLOCK: c_int = 128 << 10;
    /// In KiB, a fifth of what a run may take: below, it does not matter what is kept.
    const ENOUGH: u64 = 64 << 10;
    /// Large messages come and go in less, so that not each of them costs a pass over the heaps.
    const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
    /// What this thread needs, in bytes.
    const STACK: usize = 128 << 10;

    /// Lets memory go back to the system as soon as it is freed. By default, glibc maps large blocks of their own only until the first one was
    /// freed; from then on they lie in the heap of the thread that asks for them. A server that sends large messages on many connections makes
    /// that hundreds of MiB. What is free in the midst of these heaps stays there until it is asked for: see [`trim`].
    pub fn give_memory_back() {
        // SAFETY: `mallopt` takes two numbers, and no other thread runs yet.
        #[expect(unsafe_code, reason = "there is no other way to say this to glibc")]
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BLOCK);
            libc::mallopt(libc::M_TRIM_THRESHOLD, LARGE_BLOCK);
            // The heap of each thread reserves 64 MiB of addresses, which count where they are limited (`ulimit -v`).
            if getrlimit(Resource::As).current.is_some() {
                libc::mallopt(libc::M_ARENA_MAX, 1);
            }
        }
        // Without such a thread more memory is kept, and nothing else is wrong.
        drop(Builder::new().name("trim".to_owned()).stack_size(STACK).spawn(trim));
    }

    /// Gives back what is free in the heaps of a process that has more than [`ENOUGH`], as long as it lives. Short commands have ended before
    /// the first look.
    fn trim() {
        loop {
            std::thread::sleep(BETWEEN_LOOKS);
            let Some(resident) = resident() else { return };
            if resident > ENOUGH {
                // SAFETY: it takes a number, and the locks that every allocation takes.
                #[expect(unsafe_code, reason = "there is no other way to say this to glibc")]
                unsafe {
                    libc::malloc_trim(0);
                }
            }
        }
    }

    /// How much memory this process has, in KiB. None: the system does not tell.
    fn resident() -> Option<u64> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// Waits until this process has less than so much memory, in KiB. False: it does not come to that in a minute.
        fn comes_below(most: u64) -> bool {
            let began = std::time::Instant::now();
            while resident().expect("known") >= most {
                if began.elapsed() > Duration::from_secs(60) {
                    return false;
                }
                std::thread::yield_now();
            }
            true
        }

        #[test]
        fn what_is_free_in_the_midst_of_a_heap_goes_back() {
            let before = resident().expect("known");
            // Too small for blocks of their own; between them lies what stays.
            let (large, kept): (Vec<_>, Vec<_>) =
                (0..1024).map(|_| (vec![1_u8; 100 << 10], vec![1_u8; 64])).unzip();
            let most = before + (70 << 10);
            assert!(resident().expect("known") > most, "100 MiB are used");
            give_memory_back();
            drop(large);
            assert!(comes_below(most), "{before} KiB before, {:?} KiB now", resident());
            drop(kept);
        }
    }
}
