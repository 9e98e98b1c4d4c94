//! The commands that do the same again, or look closer.

/// The command of a run, as far as it has to be given again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reproduce {
    /// What is run against what, each argument with a space before it.
    subject: String,
    /// How it is run, the same way.
    settings: String,
    /// The server is none that the doctor can be asked about: the reference server is a part of the run.
    own: bool,
}

impl Reproduce {
    /// Of arguments that name protocol and target, and of those that a run alone takes; each with a space before it.
    pub fn new(subject: String, settings: String) -> Self {
        Self { subject, settings, own: false }
    }

    /// The same, of a run against the reference server.
    #[must_use]
    pub fn against_reference(self) -> Self {
        Self { own: true, ..self }
    }

    /// The run.
    pub fn run(&self) -> String {
        format!("frameproof run{}{}", self.subject, self.settings)
    }

    /// The run of one case alone.
    pub fn case(&self, id: &str) -> String {
        // An id is a name and no glob.
        let id = globset::escape(id);
        let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
        let quoted = if id.chars().all(plain) { id } else { format!("'{}'", id.replace('\'', "'\\''")) };
        format!("{} --case {quoted}", self.run())
    }

    /// The command that asks the doctor about the same server, or, of the reference server, runs all again.
    pub fn doctor(&self) -> String {
        if self.own {
            return self.run();
        }
        format!("frameproof doctor{}", self.subject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_doctor_is_asked_about_the_same_server() {
        let again = Reproduce::new(" mini --url ws://run/".to_owned(), " --seed 7".to_owned());
        assert_eq!(again.case("f/c"), "frameproof run mini --url ws://run/ --seed 7 --case f/c");
        assert_eq!(again.doctor(), "frameproof doctor mini --url ws://run/");
        assert_eq!(again.case("a b/*"), "frameproof run mini --url ws://run/ --seed 7 --case 'a b/[*]'");
        assert_eq!(again.clone().against_reference().doctor(), again.run());
        assert_eq!(Reproduce::default().run(), "frameproof run");
    }
}
