//! Tests of the heap: one program, so that what they share is compiled and linked once. What starts
//! itself again as another process has a program of its own.

mod checkpoints;
mod common;
mod conversion;
mod heap;
mod misuse;
mod roots;
mod slots;
