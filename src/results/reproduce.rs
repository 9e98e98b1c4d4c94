//! The commands that do the same again, or look closer.

/// The command of a run, as far as it has to be given again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reproduce {
    /// What is run against what, each argument with a space before it.
    subject: String,
    /// How it is run, the same way.
    settings: String,
}

impl Reproduce {
    /// Of arguments that name protocol and target, and of those that a run alone takes; each with a space before it.
    pub fn new(subject: String, settings: String) -> Self {
        Self { subject, settings }
    }

    /// The run.
    pub fn run(&self) -> String {
        format!("frameproof run{}{}", self.subject, self.settings)
    }

    /// The run of one case alone.
    pub fn case(&self, id: &str) -> String {
        format!("{} --case {id}", self.run())
    }

    /// The command that asks the doctor about the same server.
    pub fn doctor(&self) -> String {
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
        assert_eq!(Reproduce::default().run(), "frameproof run");
    }
}
