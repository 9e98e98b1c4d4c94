//! The `frameproof` command. Everything it does lives in the library's `cli`.

fn main() -> std::process::ExitCode {
    frameproof::cli::main()
}
