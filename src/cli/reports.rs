//! The reports of a run, of a campaign, or of recorded events.

use std::path::Path;

use super::{Failure, unwritable};
use crate::report::{file, html, json, junit};
use crate::results::event::RunEvent;

/// Where they go.
#[derive(Default)]
pub(super) struct Reports<'r> {
    pub junit: Option<&'r Path>,
    pub json: Option<&'r Path>,
    pub html: Option<&'r Path>,
}

impl Reports<'_> {
    /// Whether there is a place for each: rather now than after the campaign.
    pub fn check(&self) -> Result<(), Failure> {
        let mut paths = [self.junit, self.json, self.html].into_iter().flatten();
        paths.try_for_each(|path| file::check_writable(path).map_err(unwritable))
    }

    /// Writes them. `failure`: what it means that one cannot be written.
    pub fn write(&self, events: &[RunEvent], failure: impl Fn(String) -> Failure) -> Result<(), Failure> {
        let write = |path: Option<&Path>, text: &dyn Fn() -> Result<String, String>| {
            let Some(path) = path else { return Ok(()) };
            text().and_then(|text| file::write_atomically(path, &text)).map_err(&failure)
        };
        write(self.junit, &|| junit::render(events))?;
        write(self.json, &|| Ok(json::render(events)))?;
        write(self.html, &|| Ok(html::render(events)))
    }
}
