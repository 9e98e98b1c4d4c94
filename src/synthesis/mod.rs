//! What generated cases have in common, whoever makes them: seeded choices, the exchanges of the protocol as steps, the scripts
//! of the model, and how such a case is run and replayed.

pub mod exchanges;
pub mod fresh;
pub mod model_scripts;
pub mod rng;
pub mod runner;
pub mod text;
