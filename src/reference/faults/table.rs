//! How a dialect writes down its deliberate defects.

/// A table of defects, `Defect "its-name" "What is wrong." ["the requirements that it violates"];`: makes the enum
/// `Defect`, which the dialect consults at the one place where a defect matters, and the list `FAULTS`. `also ["…"]` names
/// requirements that are found broken at times only.
macro_rules! faults {
    ($($defect:ident $name:literal $title:literal [$($id:literal),*] $(also [$($more:literal),*])?;)*) => {
        /// One defect. Consulted at the one place where it matters.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Defect {
            $($defect,)*
        }

        /// All faults, in the order of the areas that they concern.
        pub(in crate::reference) const FAULTS: &[crate::reference::Fault] =
            &[$(crate::reference::Fault { name: $name, title: $title, violates: &[$($id),*], also: &[$($($more),*)?] }),*];

        impl crate::reference::engine::Named for Defect {
            fn named(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$defect),)* _ => None }
            }
        }
    };
}

pub(in crate::reference) use faults;
