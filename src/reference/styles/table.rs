//! How a dialect writes down its styles.

/// A table of legal behaviours, one a line:
///
/// ```text
/// styles! {
///     NullsAreLeftOut "nulls-left-out" "Fields that are null are left out." ["MC-AMB-22"];
///     NoGreeting "no-greeting" "Nothing is sent first." ["MC-HS-5"] warns ["MC-HS-5"];
///     WholeText "whole-text" "Text comes in one piece." ["MC-AMB-4"] excludes ["small-pieces"];
/// }
/// ```
///
/// A line says: the variant of the enum `Style`; its name on the command line; the behaviour in one sentence; the requirements and
/// ambiguities of the catalogue that allow it. `warns` lists requirements (SHOULD) about which the suite may warn under this style;
/// without it no warning is allowed. `excludes` names styles of the same table, or of the wire, that contradict it; once, on one of
/// the two sides, is enough.
///
/// To add one: write the line, and at the one place where the server would do otherwise ask
/// `self.style(Style::NullsAreLeftOut)` (sessions, connections and players have this method), or
/// `behaviour.style(Style::NullsAreLeftOut)` where a function is given the behaviour. Several styles may be active at once, and a
/// defect besides: a place that has both asks for the defect first. `frameproof run NAME --style nulls-left-out` tries it,
/// `frameproof selftest NAME --styles` all of them.
macro_rules! styles {
    ($($style:ident $name:literal $what:literal [$($id:literal),*]
        $(warns [$($warned:literal),*])? $(excludes [$($other:literal),*])?;)*) => {
        /// One legal behaviour. Asked for at the one place where it matters.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Style { $($style),* }

        /// All styles of this dialect.
        pub(in crate::reference) const STYLES: &[crate::reference::Style] = &[$(crate::reference::Style {
            name: $name, what: $what, allowed_by: &[$($id),*],
            warns: &[$($($warned),*)?], excludes: &[$($($other),*)?],
        }),*];

        impl crate::reference::engine::Named for Style {
            fn named(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$style),)* _ => None }
            }
        }
    };
}

pub(in crate::reference) use styles;
