//! Writes the seed corpus of the frame fuzz targets: every example of every shipped protocol, and broken texts.
//!
//! `cargo run --example fuzz_seeds` writes to `fuzz/seeds/frame`.

use frameproof::protocol::{LoadOptions, Protocol};

/// Texts near the border of what a frame is.
const BORDER: &[&str] = &[
    "{}",
    "[]",
    "null",
    "{\"a\":1,\"a\":2}",
    "{\"a\":1,\"\\u0061\":2}",
    "{\"n\":18446744073709551616,\"m\":-9223372036854775809,\"f\":1e400}",
    "{\"s\":\"\\ud800\"}",
    "{\"a\":NaN}",
    "{\"a\":1}{\"b\":2}",
    "{\"a\":[[[[[[[[[[1]]]]]]]]]]}",
    "\u{feff}{}",
    "{\"a\":\"\\u0000\"}",
];

fn main() -> std::io::Result<()> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/frame");
    std::fs::create_dir_all(&folder)?;
    for name in Protocol::embedded_names() {
        let protocol = Protocol::embedded(name, &LoadOptions::default()).map_err(std::io::Error::other)?;
        for message in &protocol.messages {
            for (index, example) in message.examples.iter().enumerate() {
                let file = format!("{name}-{}-{index}.json", message.name);
                std::fs::write(folder.join(file), example.to_string())?;
            }
        }
    }
    for (index, text) in BORDER.iter().enumerate() {
        std::fs::write(folder.join(format!("border-{index}.json")), text)?;
    }
    Ok(())
}
