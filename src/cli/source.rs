//! Which protocol and which cases a command is about.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use globset::{Glob, GlobMatcher};

use super::offer::offering;
pub(super) use super::reading::Reading;
use super::{Failure, nothing, usage};
use crate::protocol::{DialectChoice, LoadOptions, Protocol, ReadingName};
pub(super) use crate::report::escape::shell as quote;
use crate::results::case_id::{BEHIND, without_preamble};
use crate::scenario::{self, Listed, LoadedCase, Outline};
use crate::source::{nearest, nearest_few};

/// Where protocol and scenarios come from.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Source {
    /// A protocol that ships with frameproof. Default: that of the configuration; for `run` and `list` otherwise all of them.
    pub name: Option<String>,
    /// A protocol folder of your own, or a shipped protocol's name (`./NAME` is always a folder).
    #[arg(long, value_name = "PATH|NAME")]
    pub protocol: Option<PathBuf>,
    /// A scenario file or folder of your own, instead of the shipped ones. May be repeated.
    #[arg(long, value_name = "PATH")]
    pub scenario: Vec<PathBuf>,
    /// A JSON Merge Patch on the protocol, for a server that deviates in known ways. May be repeated.
    #[arg(long, value_name = "FILE")]
    pub overlay: Vec<PathBuf>,
    /// Which answer applies where the protocol's document is ambiguous.
    #[arg(long, value_name = "READING", value_enum)]
    pub reading: Option<Reading>,
    /// How the server spells the protocol's messages: `own` (as in the document), a dialect of the protocol, or `auto`.
    #[arg(long, value_name = "DIALECT")]
    pub dialect: Option<String>,
    /// A folder of JSON Schemas that the server under test has generated: its messages are also validated against them. The
    /// protocol says how the folder is read (`schemas`).
    #[arg(long, value_name = "DIR")]
    pub schemas: Option<PathBuf>,
    /// Capabilities that the server offers without announcing them, separated by commas. Cases that need them are run.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub offer: Vec<String>,
}

/// A protocol and its cases.
pub(super) struct Suite<C = LoadedCase> {
    pub protocol: Arc<Protocol>,
    pub cases: Vec<C>,
}

impl From<&Suite> for Suite<Outline> {
    fn from(suite: &Suite) -> Self {
        let cases = suite.cases.iter().map(Outline::from).collect();
        Self { protocol: Arc::clone(&suite.protocol), cases }
    }
}

/// Which cases.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Filter {
    /// Only cases whose id, or one of whose requirements, matches one of these globs: `abort/*`, `MC-APR-*`.
    #[arg(value_name = "GLOB")]
    pub globs: Vec<String>,
    /// Only cases whose id matches this glob. May be repeated.
    #[arg(long, value_name = "GLOB")]
    pub case: Vec<String>,
    /// Only cases that cover a requirement that matches this glob. May be repeated.
    #[arg(long, value_name = "GLOB")]
    pub requirement: Vec<String>,
}

impl Source {
    /// Whether nothing of it is in a file.
    pub fn is_shipped(&self) -> bool {
        self.protocol.is_none()
            && self.scenario.is_empty()
            && self.overlay.is_empty()
            && self.schemas.is_none()
    }

    /// Takes `--protocol NAME` for the name of a shipped protocol. A bare word is a filter then.
    pub fn settle(&mut self, filter: &mut Filter) {
        let word = self.protocol.as_deref().and_then(Path::to_str).filter(|word| Self::is_embedded(word));
        let Some(word) = word.map(str::to_owned) else { return };
        match self.name.take() {
            // Two names; the error comes with the protocol's loading.
            Some(name) if Self::is_embedded(&name) && name != word => return self.name = Some(name),
            Some(name) if name != word => filter.globs.insert(0, name),
            _ => {}
        }
        self.name = Some(word);
        self.protocol = None;
    }

    /// The protocol. With `--protocol` the first bare word is no name but a filter, and is moved there.
    pub fn protocol(&mut self, filter: &mut Filter) -> Result<Arc<Protocol>, Failure> {
        match self.protocols(filter)?.as_slice() {
            [only] => Ok(Arc::clone(only)),
            _ => Err(self.which("this command takes one")),
        }
    }

    /// The protocol that is named; all that ship with frameproof where none is. A first bare word that looks like a
    /// filter is moved there.
    pub fn protocols(&mut self, filter: &mut Filter) -> Result<Vec<Arc<Protocol>>, Failure> {
        self.settle(filter);
        let found = self.load(filter)?;
        super::print_notes(found.iter().filter_map(|protocol| protocol.bundle()?.note()).collect());
        Ok(found)
    }

    fn load(&mut self, filter: &mut Filter) -> Result<Vec<Arc<Protocol>>, Failure> {
        if let Some(path) = &self.protocol {
            if let Some(word) = self.name.take() {
                if Self::is_embedded(&word) {
                    let message = format!("`{word}` and --protocol {}: which one?", path.display());
                    return Err(usage(message, "without --protocol the shipped one is taken"));
                }
                filter.globs.insert(0, word);
            }
            return Ok(vec![offering(Protocol::load(path, &self.load_options())?, &self.offer)?]);
        }
        if self.name.as_deref().is_some_and(|word| word.contains(['/', '*', '?', '[', '{'])) {
            filter.globs.splice(0..0, self.name.take());
        }
        if let Some(name) = &self.name {
            return Ok(vec![offering(Protocol::embedded(name, &self.load_options())?, &self.offer)?]);
        }
        let given = [
            ("scenario", !self.scenario.is_empty()),
            ("overlay", !self.overlay.is_empty()),
            ("schemas", self.schemas.is_some()),
            ("offer", !self.offer.is_empty()),
        ];
        if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
            return Err(self.which(&format!("--{flag} (`{flag}` in frameproof.toml) belongs to one")));
        }
        let names = Protocol::embedded_names();
        Ok(on_threads(&names, |name| Protocol::embedded(name, &self.load_options()))
            .into_iter()
            .collect::<Result<_, _>>()?)
    }

    /// The protocol without the overlays, if there are some. None if the server speaks a dialect that only an overlay describes:
    /// without it no message could be read.
    pub fn bare(&self) -> Result<Option<Arc<Protocol>>, Failure> {
        if self.overlay.is_empty() {
            return Ok(None);
        }
        let mut bare = Self { overlay: Vec::new(), schemas: None, ..self.clone() };
        if let Some(DialectChoice::Named(chosen)) = self.dialect.as_deref().map(DialectChoice::from) {
            let mut own = Self { dialect: Some("own".to_owned()), ..bare.clone() };
            if !own.protocol(&mut Filter::default())?.extension.dialects.contains_key(&chosen) {
                return Ok(None);
            }
        }
        bare.protocol(&mut Filter::default()).map(Some)
    }

    /// The error where one protocol has to be named.
    pub fn which(&self, why: &str) -> Failure {
        usage(
            format!("which protocol? {why}"),
            &format!("name one: {}; or give --protocol PATH", Protocol::embedded_names().join(", ")),
        )
    }

    /// Whether a word names a protocol that ships with frameproof.
    pub fn is_embedded(word: &str) -> bool {
        Protocol::embedded_names().contains(&word)
    }

    /// Whether the protocol, or one of its cases, may have this id. Only of files that ship with frameproof it is known.
    pub fn may_have(&self, id: &str) -> bool {
        let is_own = self.protocol.is_some() || !self.scenario.is_empty() || !self.overlay.is_empty();
        let name = self.name.as_deref().filter(|_| !is_own);
        let Some(Ok(of_protocol)) = name.map(Protocol::embedded_files) else { return true };
        let of_cases = name.map(scenario::embedded_files).unwrap_or_default();
        let word = id.rsplit('/').next().unwrap_or(id).to_ascii_lowercase();
        let mut texts = of_protocol.into_iter().chain(of_cases).map(|(_, text)| text);
        texts.any(|text| text.to_ascii_lowercase().contains(&word))
    }

    fn load_options(&self) -> LoadOptions {
        let reading = self.reading.map(ReadingName::from).unwrap_or_default();
        let dialect = self.dialect.as_deref().map(DialectChoice::from).unwrap_or_default();
        LoadOptions { reading, dialect, overlays: self.overlay.clone(), schemas: self.schemas.clone() }
    }

    /// The protocols with all their cases.
    pub fn suites(&mut self, filter: &mut Filter) -> Result<Vec<Suite>, Failure> {
        let protocols = self.protocols(filter)?;
        let suite = |protocol: &Arc<Protocol>| {
            Ok(Suite { cases: self.cases(protocol)?, protocol: Arc::clone(protocol) })
        };
        on_threads(&protocols, suite).into_iter().collect()
    }

    /// The protocols with the outlines of all their cases.
    pub fn outlined(&mut self, filter: &mut Filter) -> Result<Vec<Suite<Outline>>, Failure> {
        if self.is_shipped() && self.dialect.is_none() {
            // Dialects say nothing that an outline has.
            self.dialect = Some("own".to_owned());
        }
        let protocols = self.protocols(filter)?;
        let suite = |protocol: &Arc<Protocol>| {
            Ok(Suite { cases: self.outlines(protocol)?, protocol: Arc::clone(protocol) })
        };
        on_threads(&protocols, suite).into_iter().collect()
    }

    /// The outlines of a protocol's cases.
    pub fn outlines(&self, protocol: &Protocol) -> Result<Vec<Outline>, Failure> {
        if self.scenario.is_empty() {
            return Ok(scenario::outlines(protocol)?);
        }
        Ok(self.cases(protocol)?.iter().map(Outline::from).collect())
    }

    pub fn cases(&self, protocol: &Protocol) -> Result<Vec<LoadedCase>, Failure> {
        if self.scenario.is_empty() {
            return Ok(scenario::embedded(protocol)?);
        }
        let mut cases = Vec::new();
        for path in &self.scenario {
            cases.extend(scenario::load(path, protocol)?);
        }
        super::print_notes(cases.iter_mut().flat_map(|case| std::mem::take(&mut case.notes)).collect());
        Ok(cases)
    }

    /// The arguments that select the same again, for `reproduce`.
    pub fn arguments(&self) -> String {
        let mut text = String::new();
        if let Some(name) = &self.name {
            text += &format!(" {}", quote(name));
        }
        let paths = self.protocol.iter().map(|path| ("protocol", path));
        let paths = paths.chain(self.scenario.iter().map(|path| ("scenario", path)));
        let paths = paths.chain(self.overlay.iter().map(|path| ("overlay", path)));
        for (flag, path) in paths.chain(self.schemas.iter().map(|path| ("schemas", path))) {
            text += &format!(" --{flag} {}", quote(&path.display().to_string()));
        }
        match self.reading {
            Some(Reading::Strict) => text += " --reading strict",
            Some(Reading::Lenient) => text += " --reading lenient",
            Some(Reading::Default) => text += " --reading default",
            None => {}
        }
        if let Some(dialect) = &self.dialect {
            text += &format!(" --dialect {}", quote(dialect));
        }
        if !self.offer.is_empty() {
            text += &format!(" --offer {}", quote(&self.offer.join(",")));
        }
        text
    }
}

/// Does the same with each of several things, side by side, and one after another where no thread can be had.
fn on_threads<T: Sync, R: Send>(things: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let Some((last, rest)) = things.split_last() else { return Vec::new() };
        let each = &each;
        let start = |thing| (thing, std::thread::Builder::new().spawn_scoped(scope, move || each(thing)));
        let threads: Vec<_> = rest.iter().map(start).collect();
        let last = each(last);
        let done = threads.into_iter().map(|(thing, thread)| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => each(thing),
        });
        done.collect::<Vec<_>>().into_iter().chain([last]).collect()
    })
}

/// A glob, and which kind of id it may match.
struct Pattern<'p> {
    text: &'p str,
    glob: GlobMatcher,
    cases: bool,
    requirements: bool,
}

impl<'p> Pattern<'p> {
    fn new(text: &'p str, cases: bool, requirements: bool) -> Result<Self, Failure> {
        match Glob::new(text) {
            Ok(glob) => Ok(Self { text, glob: glob.compile_matcher(), cases, requirements }),
            Err(error) => {
                let hint = "a glob has `*`, `?`, `[abc]` and `{one,two}`; quote it for the shell";
                Err(usage(format!("`{text}` is not a glob: {}", error.kind()), hint))
            }
        }
    }

    /// Whether it is about cases behind a preamble.
    fn names_preamble(&self) -> bool {
        self.text.contains(BEHIND)
    }

    /// A glob over cases without a preamble also matches them behind one.
    fn matches(&self, case: &impl Listed) -> bool {
        let id = case.id();
        self.cases && self.glob.is_match(if self.names_preamble() { id } else { without_preamble(id) })
            || self.requirements && case.covered().iter().any(|id| self.glob.is_match(id))
    }
}

impl Filter {
    pub fn is_empty(&self) -> bool {
        self.globs.is_empty() && self.case.is_empty() && self.requirement.is_empty()
    }

    fn patterns(&self) -> Result<[Vec<Pattern<'_>>; 3], Failure> {
        fn compile(texts: &[String], cases: bool, requirements: bool) -> Result<Vec<Pattern<'_>>, Failure> {
            texts.iter().map(|text| Pattern::new(text, cases, requirements)).collect()
        }
        Ok([
            compile(&self.globs, true, true)?,
            compile(&self.case, true, false)?,
            compile(&self.requirement, false, true)?,
        ])
    }

    /// The globs over cases behind preambles.
    pub fn behind(&self) -> Result<Vec<GlobMatcher>, Failure> {
        let [any, cases, _] = self.patterns()?;
        let patterns = any.into_iter().chain(cases).filter(Pattern::names_preamble);
        Ok(patterns.map(|pattern| pattern.glob).collect())
    }

    /// The cases that match one pattern of each kind that is given, without the suites of which none is left. A
    /// pattern that matches nothing is an error: it is mistyped.
    pub fn select<C: Listed>(&self, suites: Vec<Suite<C>>) -> Result<Vec<Suite<C>>, Failure> {
        let patterns = self.patterns()?;
        let all = || suites.iter().flat_map(|suite| &suite.cases);
        for pattern in patterns.iter().flatten() {
            if !all().any(|case| pattern.matches(case)) {
                return Err(unmatched(pattern, &suites));
            }
        }
        let total = all().count();
        if total == 0 {
            return Err(nothing("there is no case", "give scenarios of your own: --scenario PATH"));
        }
        let fits = |case: &C| {
            patterns.iter().all(|kind| kind.is_empty() || kind.iter().any(|pattern| pattern.matches(case)))
        };
        let mut chosen = suites;
        chosen.iter_mut().for_each(|suite| suite.cases.retain(fits));
        chosen.retain(|suite| !suite.cases.is_empty());
        if chosen.is_empty() {
            let message = format!("no case of {total} matches all the filters");
            return Err(nothing(message, "leave one of them out"));
        }
        Ok(chosen)
    }

    /// Whether a requirement is named by a requirement glob, or there is none.
    pub fn names(&self, requirement: &str) -> Result<bool, Failure> {
        let [any, _, requirements] = self.patterns()?;
        let any = any.iter().filter(|pattern| !pattern.text.contains('/'));
        let mut named = any.chain(&requirements).peekable();
        Ok(named.peek().is_none() || named.any(|pattern| pattern.glob.is_match(requirement)))
    }
}

/// Why a pattern selects nothing.
fn unmatched<C: Listed>(pattern: &Pattern<'_>, suites: &[Suite<C>]) -> Failure {
    let total: usize = suites.iter().map(|suite| suite.cases.len()).sum();
    let message = format!("no case of {total} matches `{}`", pattern.text);
    let ids = || {
        let known = suites.iter().flat_map(|suite| suite.protocol.requirements.0.keys());
        known.filter(|_| pattern.requirements)
    };
    if let Some(id) = ids().find(|id| pattern.glob.is_match(id)) {
        let hint = format!(
            "{id} is judged in every case, or in none (see `frameproof explain {id}`): run without this filter"
        );
        return nothing(message, &hint);
    }
    let plain = pattern.cases && pattern.requirements && !pattern.text.contains('/');
    if let Some(protocol) = nearest(pattern.text, Protocol::embedded_names()).filter(|_| plain) {
        let hint = format!("did you mean the protocol `{protocol}`? A word that names none selects cases");
        return nothing(message, &hint);
    }
    let near = near(pattern, suites, ids().map(String::as_str));
    let hint = if near.is_empty() {
        "`frameproof list` shows the cases, `frameproof list --requirements` the requirements".to_owned()
    } else {
        format!("did you mean {}?", near.join(" or "))
    };
    nothing(message, &hint)
}

/// What was perhaps meant by a pattern that matches nothing: ids like it, the same of a family like it, or cases whose name
/// is like it.
fn near<'i, C: Listed>(
    pattern: &Pattern<'_>,
    suites: &'i [Suite<C>],
    ids: impl Iterator<Item = &'i str>,
) -> Vec<String> {
    const MOST: usize = 3;
    let quoted = |found: Vec<&str>| found.into_iter().map(|id| format!("`{id}`")).collect::<Vec<_>>();
    let cases = || suites.iter().flat_map(|suite| &suite.cases).filter(|_| pattern.cases);
    let word = pattern.text.trim_matches(['*', '?', '/']);
    let found = nearest_few(word, cases().map(Listed::id).chain(ids), MOST);
    if !found.is_empty() {
        return quoted(found);
    }
    let (family, name) = pattern.text.split_once('/').unwrap_or(("", pattern.text));
    if let Some(family) = nearest(family, cases().map(|case| case.family_and_name().0)) {
        let same = format!("{family}/{name}");
        let fits = Glob::new(&same).is_ok_and(|glob| {
            let glob = glob.compile_matcher();
            cases().any(|case| glob.is_match(case.id()))
        });
        return vec![if fits { format!("`{same}`") } else { format!("`{family}/*`") }];
    }
    let name = name.trim_matches(['*', '?']);
    let names = nearest_few(name, cases().map(|case| case.family_and_name().1), MOST);
    let of_name = cases().filter(|case| names.contains(&case.family_and_name().1)).take(MOST);
    quoted(of_name.map(Listed::id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_protocol_has_it_may_have() {
        for name in Protocol::embedded_names() {
            let mut source = Source { name: Some(name.to_owned()), ..Source::default() };
            let suites = source.outlined(&mut Filter::default()).expect("it loads");
            let requirements = suites[0].protocol.requirements.0.keys();
            let ids = requirements.chain(suites[0].protocol.extension.readings.keys());
            for id in ids.chain(suites[0].cases.iter().map(|case| &case.id)) {
                assert!(source.may_have(id) && source.may_have(&id.to_ascii_lowercase()), "{name}: {id}");
            }
            assert!(!source.may_have("XX-NONE-1"), "{name}");
        }
    }
}
