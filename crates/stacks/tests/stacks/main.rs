//! Stacks and measurements, through the public interface. One program, because linking OpenSSL takes long.

#![allow(clippy::unwrap_used)] // a test that panics has found something

mod accounting;
mod captures;
mod common;
mod every_suite;
mod expected_operations;
mod exponents;
mod failures;
mod foreign;
mod injections;
mod interleaving;
mod lifetimes;
mod links;
mod messages;
mod operations;
mod seeds;
mod sizes;
mod stranger;
