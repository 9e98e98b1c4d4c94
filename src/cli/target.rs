//! `--target`: from `[target.NAME]` to something that can be run.

use std::path::Path;
use std::sync::Arc;

use clap::Args;

use super::config::Config;
use super::config_check::{ConfigCheck, Files, table};
use super::mutants;
use super::source::{Filter, Source, Suite, quote};
use super::{Failure, did_you_mean, usage};
use crate::protocol::Protocol;
use crate::protocol::extension::TargetTool;
use crate::run::prompts::Prompts;
use crate::source::{Diagnostic, Diagnostics, Document, Part, escape_token};
use crate::target::{LaunchFailure, Spec, SpecError, TargetConfig, ToolConfig};
use crate::template;

/// A day: nobody sits before a debugger for longer.
const DAY: std::time::Duration = std::time::Duration::from_secs(86_400);

/// Which configured server, and how to treat it.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct TargetChoice {
    /// A server of the configuration, `[target.NAME]` of frameproof.toml: launch it, test it and stop it.
    #[arg(long, value_name = "NAME", conflicts_with = "url")]
    pub target: Option<String>,
    /// Launch nothing: the target is already running, for example in a debugger.
    #[arg(long, requires = "target")]
    pub attach: bool,
    /// Wait without a deadline: the server may be at a breakpoint.
    #[arg(long)]
    pub no_deadline: bool,
}

/// A chosen target, read and checked.
pub(super) struct Chosen {
    pub config: TargetConfig,
    pub spec: Arc<Spec>,
    pub prompts: Prompts,
    /// The same with the defect of each of its `mutants`, in their order.
    pub mutants: Vec<Arc<Spec>>,
    /// The file that it stands in.
    document: Document,
    /// The arguments that choose it again.
    pub arguments: String,
}

/// The argument that names the configuration, with a space before it, if one is named.
pub(super) fn config_argument(file: Option<&Path>) -> String {
    file.map(|file| format!(" --config {}", quote(&file.display().to_string()))).unwrap_or_default()
}

/// `frameproof.toml` has several targets that fit.
pub(super) fn which_target(names: &[&str]) -> Failure {
    usage("which target?", &format!("--target NAME: there are {}", names.join(", ")))
}

impl TargetChoice {
    /// Where the command line says no server, the configuration's only target that fits the protocol which it names. Where it has
    /// targets and none fits, that is told, for the reference server's verdict says nothing of them.
    ///
    /// # Errors
    /// Several fit.
    pub fn pick(&mut self, config: &Config, source: &Source) -> Result<(), Failure> {
        let path = source.protocol.as_deref().and_then(Path::to_str);
        let wanted = path.or(source.name.as_deref().filter(|word| Source::is_embedded(word)));
        let own = config.name.as_deref().or(config.protocol.as_deref().and_then(Path::to_str));
        let fits = |target: &TargetConfig| match (wanted, target.protocol.as_deref().or(own)) {
            (Some(wanted), Some(protocol)) => Path::new(wanted) == Path::new(protocol),
            _ => true,
        };
        let fitting = config.target.iter().filter(|(_, target)| fits(target));
        match fitting.map(|(name, _)| name.as_str()).collect::<Vec<_>>()[..] {
            [only] => self.target = Some(only.to_owned()),
            [] if config.target.is_empty() => {}
            [] => {
                let names: Vec<_> = config.target.keys().map(|name| format!("`{name}`")).collect();
                super::print_notes(vec![Diagnostic::note(format!(
                    "the configuration's {} is not tested: --target NAME chooses one",
                    names.join(", ")
                ))]);
            }
            ref many => return Err(which_target(many)),
        }
        Ok(())
    }

    /// The chosen target, if one is chosen. `given`, `files`: what the command line says itself.
    ///
    /// # Errors
    /// All that is wrong in what the configuration says, of the target or of what it is tested with.
    pub fn read(
        &self,
        config: &Config,
        file: Option<&Path>,
        given: &Source,
        files: Files<'_>,
    ) -> Result<Option<Chosen>, Failure> {
        let files = Files { ca_file: files.ca_file.or(config.ca_file.as_deref()), ..files };
        let Some(name) = &self.target else {
            let mut source = given.clone();
            let same = config.fill(&mut source, &mut Filter::default());
            let baseline = files.baseline.or(config.baseline.as_deref().filter(|_| same));
            config.check(&source, Files { baseline, ..files })?;
            return Ok(None);
        };
        let known = || config.target.keys().map(String::as_str);
        let Some(target) = config.target.get(name) else {
            let there = || match known().collect::<Vec<_>>()[..] {
                [] => format!(
                    "describe it in frameproof.toml, under [target.{name}]; see docs/testing-your-server.md"
                ),
                ref names => format!("there are {}", names.join(", ")),
            };
            let hint = match name.contains("://") {
                true => format!("for a server that runs already: --url {name}"),
                false => did_you_mean(name, known(), there),
            };
            return Err(usage(format!("there is no target `{name}`"), &hint));
        };
        let Some((folder, document)) = config.place.clone() else {
            return Err(usage("a target needs a configuration file", "--config FILE"));
        };
        let mut source = given.clone();
        apply(target, &mut source, &mut Filter::default());
        let same = config.fill(&mut source, &mut Filter::default());
        let own = config.baseline.as_deref().filter(|_| same);
        let said = ConfigCheck { config, document: &document, target: Some(name) };
        let baseline = files.baseline.or(target.baseline.as_deref()).or(own);
        let mut errors = said.check(&source, Files { baseline, ..files });
        let environment = |variable: &str| std::env::var(variable).ok();
        let spec = Spec::new(name, target, &folder, self.attach, &environment);
        let spec =
            spec.map_err(|wrong| wrong.iter().for_each(|one| errors.push(placed(one, name, &document))));
        let prompts = Prompts::new(&target.prompts).map_err(|(glob, why)| {
            let at = format!("{}/prompts/{}", table(name), escape_token(&glob));
            let error = Diagnostic::new(format!("`{glob}` is not a glob: {why}"));
            let hint = "a glob over cases: `family/case`, `family/*`, `*`";
            errors.push(error.at(&document, &at, Part::Key).hint(hint));
        });
        let (Ok(spec), Ok(prompts), true) = (spec, prompts, errors.0.is_empty()) else {
            return Err(errors.into());
        };
        let mutants = mutants::specs(name, target, &spec, &folder, &environment);
        let mutants = mutants.map_err(|wrong| {
            let at = |at: &str| format!("{}/mutants{at}", table(name));
            Diagnostics(wrong.into_iter().map(|one| one.diagnostic(&document, &at)).collect())
        })?;
        let mut spec = spec;
        if self.no_deadline {
            spec.patience.start = DAY;
        }
        let mut arguments = config_argument(file);
        arguments += &format!(" --target {}", quote(name));
        arguments += if self.attach { " --attach" } else { "" };
        arguments += if self.no_deadline { " --no-deadline" } else { "" };
        Ok(Some(Chosen {
            config: target.clone(),
            spec: Arc::new(spec),
            prompts,
            mutants,
            document,
            arguments,
        }))
    }
}

impl Chosen {
    /// Fills in what the command line leaves open.
    pub fn apply(&self, source: &mut Source, filter: &mut Filter) {
        apply(&self.config, source, filter);
    }

    /// Gives the protocol the target's own tools and parameters.
    pub fn tools(&self, suites: &mut [Suite]) -> Result<(), Failure> {
        let mut errors = Diagnostics::default();
        for suite in suites {
            self.parameters(suite, &mut errors);
            if self.config.sessions.is_some_and(|sessions| sessions.get() == 1)
                && let Some(protocol) = Arc::get_mut(&mut suite.protocol)
            {
                protocol.set_single_session();
            }
            self.broken(suite, &mut errors);
            for (class, tool) in &self.config.tools {
                let at = format!("{}/tools/{}", table(&self.spec.name), escape_token(class));
                if !self.has_class(class, &at, Part::Key, &suite.protocol, &mut errors) {
                    continue;
                }
                self.arguments(class, tool, &suite.protocol, &mut errors);
                // Nobody else has it yet.
                if let Some(protocol) = Arc::get_mut(&mut suite.protocol) {
                    protocol.set_tool(class, Some(&tool.name), &TargetTool::Mapped(tool.args.clone()));
                }
            }
            for (index, class) in self.config.without_tools.iter().enumerate() {
                let at = format!("{}/without-tools/{index}", table(&self.spec.name));
                if !self.has_class(class, &at, Part::Value, &suite.protocol, &mut errors) {
                    continue;
                }
                if self.config.tools.contains_key(class) {
                    let error = Diagnostic::new(format!("the class `{class}` has a tool in `tools`"));
                    let hint = "remove it from one of the two";
                    errors.push(error.at(&self.document, &at, Part::Value).hint(hint));
                } else if let Some(protocol) = Arc::get_mut(&mut suite.protocol) {
                    protocol.set_tool(class, None, &TargetTool::Absent);
                }
            }
        }
        Ok(errors.or(())?)
    }

    /// What the mutants break must be requirements of the protocol.
    fn broken(&self, suite: &Suite, errors: &mut Diagnostics) {
        let requirements = &suite.protocol.requirements;
        for (index, mutant) in self.config.mutants.iter().enumerate() {
            for (place, id) in
                mutant.breaks.iter().enumerate().filter(|(_, id)| requirements.get(id).is_none())
            {
                let at = format!("{}/mutants/{index}/breaks/{place}", table(&self.spec.name));
                let unknown = Diagnostic::new(format!("unknown requirement `{id}`"));
                let known = requirements.0.keys().map(String::as_str);
                errors.push(unknown.at(&self.document, &at, Part::Value).suggest(id, known));
            }
        }
    }

    /// Gives the protocol the target's own parameters.
    fn parameters(&self, suite: &mut Suite, errors: &mut Diagnostics) {
        for (name, value) in &self.config.parameters {
            let known = &suite.protocol.extension.parameters;
            if !known.contains_key(name) {
                let at = format!("{}/parameters/{}", table(&self.spec.name), escape_token(name));
                let error = Diagnostic::new(format!("the protocol has no parameter `{name}`"));
                let known = known.keys().map(String::as_str);
                errors.push(error.at(&self.document, &at, Part::Key).suggest(name, known));
            } else if let Some(protocol) = Arc::get_mut(&mut suite.protocol) {
                protocol.set_parameter(name, value.clone());
            }
        }
    }

    /// The protocol has tools of the class that stands at a place; else that is wrong.
    fn has_class(
        &self,
        class: &str,
        at: &str,
        part: Part,
        protocol: &Protocol,
        errors: &mut Diagnostics,
    ) -> bool {
        let tools = &protocol.extension.tools;
        let is_known = tools.contains_key(class);
        if !is_known {
            let error = Diagnostic::new(format!("there is no class of tools `{class}`"));
            let classes = tools.keys().map(String::as_str);
            errors.push(error.at(&self.document, at, part).suggest(class, classes));
        }
        is_known
    }

    /// Templates in a tool's arguments name what the class takes.
    fn arguments(&self, class: &str, tool: &ToolConfig, protocol: &Protocol, errors: &mut Diagnostics) {
        let Some(own) = protocol.extension.tools.get(class) else { return };
        let known: Vec<&str> = own.args.keys().map(String::as_str).chain(["uid", "uuid"]).collect();
        for (key, value) in &tool.args {
            for name in template::names(value) {
                if !known.contains(&name.as_str()) {
                    let at = format!("{}/tools/{class}/args/{}", table(&self.spec.name), escape_token(key));
                    let error = Diagnostic::new(format!("the class `{class}` has no argument `{name}`"));
                    errors.push(error.at(&self.document, &at, Part::Value).suggest(&name, known.clone()));
                }
            }
        }
    }
}

/// What a target says of protocol and scenarios, where the command line leaves it open.
fn apply(config: &TargetConfig, source: &mut Source, filter: &mut Filter) {
    if let Some(protocol) = &config.protocol
        && source.protocol.is_none()
        && !source.name.as_deref().is_some_and(Source::is_embedded)
    {
        // The target says which protocol: a bare word that is none is a filter.
        filter.globs.splice(0..0, source.name.take());
        let own = !Source::is_embedded(protocol);
        source.protocol = own.then(|| protocol.into());
        if !own {
            source.name = Some(protocol.clone());
        }
    }
    if source.scenario.is_empty() {
        source.scenario.clone_from(&config.scenario);
    }
    if source.overlay.is_empty() {
        source.overlay.clone_from(&config.overlay);
    }
    source.schemas = source.schemas.take().or_else(|| config.schemas.clone());
    source.reading = source.reading.or(config.reading.map(Into::into));
    source.dialect = source.dialect.take().or_else(|| config.dialect.clone());
}

/// An error in a target's table, at its place there.
fn placed(error: &SpecError, target: &str, document: &Document) -> Diagnostic {
    /// Lines that a text of TOML may have.
    const LINES: usize = 100;
    let at = format!("{}{}", table(target), error.at);
    let mut diagnostic = Diagnostic::new(error.message.as_str()).at(document, &at, Part::Value);
    if !error.word.is_empty() {
        let word = error.word.as_str();
        let find = |text: &str| {
            let plain = || text.find(word).map(|at| at..at + word.len());
            crate::template::find(text, word).or_else(plain)
        };
        diagnostic.place = Some((document.clone(), document.span_within(&at, LINES, find)));
    }
    if error.hint.is_empty() { diagnostic } else { diagnostic.hint(error.hint.as_str()) }
}

/// Shows the end of the output of a server that did not start, and says what to do, and where.
pub(super) fn cannot_launch(failure: &LaunchFailure, hint: &str, chosen: Option<&Chosen>) -> Failure {
    use std::io::Write;
    let mut out = anstream::stderr();
    for line in &failure.output {
        let text = crate::report::escape::terminal(&line.text).into_owned();
        // Nothing is left to do when standard error is gone, too.
        let _ = writeln!(out, "{} | {text}", crate::report::escape::terminal(&line.process));
    }
    let mut error = super::diagnostic(&failure.error, hint);
    if let Some(Chosen { config, spec, document, .. }) = chosen
        && let Some(at) = failure.error.place(config)
    {
        error = error.at(document, &format!("{}{at}", table(&spec.name)), Part::Value);
    }
    Failure::Harness(error.into())
}
