//! `frameproof schema`.

use std::io::Write;

use clap::{Args, ValueEnum};

use super::Failure;
use super::config::Config;
use crate::exit::Exit;
use crate::protocol::{Extension, RequirementsFile};
use crate::results::baseline::BaselineFile;
use crate::scenario::file::ScenarioFile;
use crate::selftest::report::Report;
use crate::source::{schema_of, with_synonyms};
use crate::trace::Line;

/// Print a JSON Schema for editors.
#[derive(Debug, Args)]
pub(super) struct Schema {
    /// The kind of file that the schema describes.
    #[arg(value_enum)]
    of: Of,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Of {
    /// A scenario file.
    Scenario,
    /// The `x-frameproof` extension of a protocol's asyncapi.yaml.
    Protocol,
    /// A protocol's requirements.yaml.
    Requirements,
    /// One line of a trace.
    Trace,
    /// A baseline.
    Baseline,
    /// frameproof.toml.
    Config,
    /// A report of `selftest --report`.
    Selftest,
}

impl Schema {
    pub fn run(self) -> Result<Exit, Failure> {
        let schema = match self.of {
            Of::Scenario => schema_of::<ScenarioFile>(),
            Of::Protocol => with_synonyms(schema_of::<Extension>()),
            Of::Requirements => schema_of::<RequirementsFile>(),
            Of::Trace => schema_of::<Line<'static>>(),
            Of::Baseline => schema_of::<BaselineFile>(),
            Of::Config => schema_of::<Config>(),
            Of::Selftest => schema_of::<Report>(),
        };
        // A value always serialises.
        let text = serde_json::to_string_pretty(&schema).unwrap_or_default();
        writeln!(anstream::stdout(), "{text}")?;
        Ok(Exit::Passed)
    }
}
