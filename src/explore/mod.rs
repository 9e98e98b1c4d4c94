//! Exploration: long, seeded, valid conversations made from a protocol's own data, judged like any case.
//!
//! A [`walk::Walk`] is a list of moves of a few clients. [`table`] says what moves a protocol has, [`model`] in which state each is
//! legal and what comes of it, and [`generate`] chooses among the legal ones. [`render`] makes a scenario's case of a walk, and
//! [`campaign`] runs many. What fails is confirmed, made small ([`shrink`]) and kept as a [`finding`].

mod alone;
pub mod campaign;
pub mod coverage;
mod failure;
pub mod finding;
pub mod generate;
pub mod model;
pub mod render;
pub mod results;
mod scripts;
pub mod shrink;
pub mod table;
pub mod walk;
