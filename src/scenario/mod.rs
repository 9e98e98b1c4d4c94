//! The scenario DSL: model, loader, templates, matchers.

pub mod model;
